import type { Entry } from "@turnkeeper/state-store";
import { cutText } from "./cut-text.ts";
import { estimateTokens } from "./token-estimate.ts";

/** How much of one piece is shown at most, in characters. */
interface PieceLengths {
  readonly spoken: number;
  readonly produced: number;
}

// What was said matters more than what a tool printed, and old summaries are short already.
const fullLengths: PieceLengths = { spoken: 12_000, produced: 3_000 };
/** Below this a piece tells nothing. */
const shortestLength = 150;

function pieceOf({ body }: Entry, { spoken, produced }: PieceLengths): readonly string[] {
  switch (body.role) {
    case "notice":
      return [];
    case "user":
      return [`[user] ${cutText(body.text, spoken)}`];
    case "summary":
      return [`[summary of what came before] ${cutText(body.text, spoken)}`];
    case "tool": {
      const output = typeof body.output === "string" ? body.output : JSON.stringify(body.output);
      return [`[result of ${body.name}, ${body.status}] ${cutText(output, produced)}`];
    }
    case "assistant":
      return body.parts.flatMap((part) => {
        if (part.type === "reasoning") return [];
        if (part.type === "text") return [`[assistant] ${cutText(part.text, spoken)}`];
        if (part.type === "provider-tool")
          return [`[assistant used ${part.name}] ${cutText(JSON.stringify(part.output ?? null), produced)}`];
        return [`[assistant calls ${part.name}] ${cutText(JSON.stringify(part.input), produced)}`];
      });
  }
}

/** Leaves out pieces between the beginning and the end until the rest has room. */
function withoutMiddle(pieces: readonly string[], tokensMax: number): readonly string[] {
  const head: string[] = [];
  const tail: string[] = [];
  let restTokens = tokensMax;
  for (const [index, piece] of pieces.toReversed().entries()) {
    // The first piece says what it is all about; three quarters of the room are the end's.
    restTokens -= estimateTokens(piece);
    if (restTokens < tokensMax / 4 || index === pieces.length - 1) break;
    tail.push(piece);
  }
  for (const piece of pieces.slice(0, pieces.length - tail.length)) {
    restTokens -= estimateTokens(piece);
    if (restTokens < 0) break;
    head.push(piece);
  }
  const leftOut = pieces.length - head.length - tail.length;
  return [...head, ...(leftOut > 0 ? [`[… ${leftOut} pieces left out …]`] : []), ...tail.toReversed()];
}

/**
 * A basis as text of at most about `tokensMax`, for whoever summarises it: long pieces with their beginnings and ends,
 * shorter ones the less room there is; where even that is too much, the beginning and the end of the whole.
 */
export function excerptOf(basis: readonly Entry[], tokensMax: number): string {
  let lengths = fullLengths;
  for (;;) {
    const pieces = basis.flatMap((entry) => pieceOf(entry, lengths));
    const tokens = pieces.reduce((sum, piece) => sum + estimateTokens(piece), 0);
    if (tokens <= tokensMax) return pieces.join("\n");
    if (lengths.produced / 2 < shortestLength) return withoutMiddle(pieces, tokensMax).join("\n");
    lengths = { spoken: lengths.spoken / 2, produced: lengths.produced / 2 };
  }
}
