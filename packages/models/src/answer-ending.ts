import type { LanguageModelV3FinishReason } from "@ai-sdk/provider";
import type { ModelErrorCode } from "./errors.ts";

/** Whether a part of a stream, or of a whole result, is something a user or a loop can use. Reasoning alone is not. */
export function isContent(part: { readonly type: string; readonly delta?: string; readonly text?: string }): boolean {
  switch (part.type) {
    case "text":
    case "text-delta":
      return (part.delta ?? part.text ?? "").trim() !== "";
    case "tool-call":
    case "tool-result":
    case "tool-approval-request":
    case "file":
    case "source":
      return true;
    default:
      return false;
  }
}

/**
 * What is wrong with the way an answer ended, if anything.
 *
 * The AI SDK's clients begin with the reason `other` (or `error`) and no raw reason, and report that when a stream stops
 * without the provider's own `finish_reason`, `message_stop` or `response.completed`: a cut that looks like an end.
 */
export function verdictOn(
  { unified, raw }: LanguageModelV3FinishReason,
  hasContent: boolean,
  alwaysGivesReason: boolean,
): ModelErrorCode | undefined {
  if (unified === "error" || raw === "error") return raw === undefined ? "MODEL_STREAM_CUT" : "MODEL_SERVER";
  if (unified === "other" && raw === undefined && alwaysGivesReason) return "MODEL_STREAM_CUT";
  const mayBeEmpty = unified === "length" || unified === "content-filter";
  return hasContent || mayBeEmpty ? undefined : "MODEL_EMPTY";
}
