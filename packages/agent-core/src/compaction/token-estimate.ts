/** How long something is in tokens, without asking anybody: near enough to decide by, and cheap. */
import type { AssistantPart, EntryBody } from "@turnkeeper/state-store";

/** English has four letters a token; a Chinese character is three bytes and most of a token. */
const bytesPerToken = 4;
/** Roles and separators around each message. */
const tokensPerEntry = 4;

export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

/** What goes with every request beside the conversation: the instructions, and the tools as they are declared. */
export function overheadTokens(system: string, declarations: readonly unknown[]): number {
  return estimateTokens(declarations.length === 0 ? system : system + JSON.stringify(declarations));
}

function partTokens(part: AssistantPart): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return estimateTokens(part.text);
    case "tool-call":
      return estimateTokens(part.name) + estimateTokens(JSON.stringify(part.input));
    case "provider-tool":
      return estimateTokens(part.name) + estimateTokens(JSON.stringify([part.input, part.output]));
  }
}

/** What an entry takes in a request, reasoning included; a notice is not sent. */
export function entryTokens(body: EntryBody): number {
  switch (body.role) {
    case "notice":
      return 0;
    case "assistant":
      return body.parts.reduce((sum, part) => sum + partTokens(part), tokensPerEntry);
    case "tool":
      return (
        tokensPerEntry + estimateTokens(typeof body.output === "string" ? body.output : JSON.stringify(body.output))
      );
    case "summary":
      return (body.userTexts ?? []).reduce((sum, text) => sum + estimateTokens(text), estimateTokens(body.text));
    case "user":
      return tokensPerEntry + estimateTokens(body.text);
  }
}

/** A count that is so much smaller than the estimate leaves something out: what was cached, or everything. */
const leastOfEstimate = 0.5;

/**
 * What the provider counted of the request for this answer and of the answer itself; absent where it did not count, or
 * cannot have counted all of it. `estimate` is that of everything up to and with the answer.
 */
export function plausibleTokens(body: EntryBody, estimate: number): number | undefined {
  if (body.role !== "assistant" || body.usage?.inputTokens === undefined) return undefined;
  const counted = body.usage.inputTokens + Math.max(0, body.usage.outputTokens ?? 0);
  return counted > 0 && counted >= estimate * leastOfEstimate ? counted : undefined;
}
