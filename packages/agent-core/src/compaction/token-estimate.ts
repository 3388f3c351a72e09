/** How long something is in tokens, without asking anybody: near enough to decide by, and cheap. */
import type { AssistantPart, EntryBody, Usage } from "@turnkeeper/state-store";

/** English has four letters a token; a Chinese character is three bytes and most of a token. */
const bytesPerToken = 4;
/** Roles and separators around each message. */
const tokensPerEntry = 4;

export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
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

/** What the request and the answer that `usage` tells of had together; absent where the provider did not count. */
export function measuredTokens({ inputTokens, outputTokens = 0 }: Usage): number | undefined {
  return inputTokens === undefined || !(inputTokens > 0) ? undefined : inputTokens + Math.max(0, outputTokens);
}
