import type { LanguageModelV3FinishReason } from "@ai-sdk/provider";

/** What is known of where a model is called, as far as its habits depend on it. */
export interface Whereabouts {
  readonly modelId: string;
  readonly baseUrl: string;
}

/**
 * Servers that report `stop` for an answer which they cut at their output limit, by model. Ollama's own cloud reports
 * it right, and of any other server on the same machine nothing is known.
 */
const habits: readonly { readonly model: RegExp; readonly isServer: (url: URL) => boolean }[] = [
  {
    model: /glm/i,
    isServer: ({ hostname, port, pathname }) =>
      (port === "11434" || /ollama/i.test(hostname + pathname)) && !/(?:^|\.)ollama\.com$/i.test(hostname),
  },
];

/** Whether `stop` may stand for `length` there. */
export function mayCutSilently({ modelId, baseUrl }: Whereabouts): boolean {
  if (/:cloud/i.test(modelId) || !URL.canParse(baseUrl)) return false;
  const url = new URL(baseUrl);
  return habits.some(({ model, isServer }) => model.test(modelId) && isServer(url));
}

// Closing punctuation, of Chinese and Japanese too; the end of code, of emphasis or of a table's row; an emoji or a flag.
const naturalEnd =
  /(?:[.!?…)\]}>"'”’»`*_|~]|[。．！？…）］｝】》〉」』]|\p{Extended_Pictographic}[\u{FE0F}\u{200D}\p{Emoji_Modifier}]*|\p{Regional_Indicator})\s*$/u;

/** How much of a text's end is enough to tell. */
const tailLength = 16;

/** The end of `text` with what came behind it. */
export function tailOf(text: string, delta = ""): string {
  return (text + delta.slice(-tailLength * 2)).slice(-tailLength);
}

/** The reason as it is meant: a text that stops in the middle was cut, whatever the server says. */
export function meantReason(reason: LanguageModelV3FinishReason, tail: string): LanguageModelV3FinishReason {
  const isCut = reason.unified === "stop" && tail.trim() !== "" && !naturalEnd.test(tail);
  return isCut ? { ...reason, unified: "length" } : reason;
}
