import type { Entry } from "@turnkeeper/state-store";
import { cutText } from "./cut-text.ts";

const lengthMax = 12_000;
const earlierLengthMax = 6_000;
const lineLength = 240;

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= lineLength ? line : `${line.slice(0, lineLength).toWellFormed()}…`;
}

function lineOf({ body }: Entry): readonly string[] {
  switch (body.role) {
    case "notice":
    case "summary":
      return [];
    case "user":
      return [`- The user: ${oneLine(body.text)}`];
    case "tool": {
      const output = typeof body.output === "string" ? body.output : JSON.stringify(body.output);
      return [`- ${body.name} ${body.status === "ok" ? "answered" : body.status}: ${oneLine(output)}`];
    }
    case "assistant":
      return body.parts.flatMap((part) => {
        if (part.type === "reasoning") return [];
        if (part.type === "text") return [`- The assistant: ${oneLine(part.text)}`];
        return [`- The assistant called ${part.name} ${oneLine(JSON.stringify(part.input))}`];
      });
  }
}

/**
 * What can be said of a basis without a model: the summary before it, and a line for each step, the newest first to be
 * kept. Pure: the same basis has the same one.
 */
export function fallbackSummary(basis: readonly Entry[]): string {
  const earlier = basis.flatMap(({ body }) => (body.role === "summary" ? [body.text] : []));
  const kept: string[] = [];
  const lines = basis.flatMap(lineOf);
  let restLength = lengthMax;
  for (const line of lines.toReversed()) {
    restLength -= line.length + 1;
    if (restLength < 0) break;
    kept.push(line);
  }
  const leftOut = lines.length - kept.length;
  return [
    "No model was there to write this summary: it is made of the beginnings of what was said and done.",
    ...earlier.map((text) => cutText(text, earlierLengthMax)),
    ...(leftOut > 0 ? [`- (${leftOut} earlier steps are left out)`] : []),
    ...kept.toReversed(),
  ].join("\n");
}
