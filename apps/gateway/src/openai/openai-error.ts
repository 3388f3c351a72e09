import type { TurnFinished } from "@turnkeeper/agent-core";
import { Refusal, retryLater, storeRefusal } from "../refusal.ts";
import type { TellRefusal } from "../route.ts";
import { isOfStore } from "../told-end.ts";

/** An error as OpenAI's API tells it. */
export interface OpenAiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

const typeOf = (status: number): string => {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
};

/** Codes that this API has a word of its own for. */
const itsWords: Readonly<Record<string, string>> = {
  unauthorised: "invalid_api_key",
  request_invalid: "invalid_value",
};

/** `body.messages.0.content` as `messages[0].content`. */
const paramOf = (field: string): string => field.replace(/^body\./, "").replaceAll(/\.(\d+)(?=\.|$)/g, "[$1]");

export function errorOf({ status, code, message, fields }: Refusal): OpenAiError {
  const [field] = fields ?? [];
  return { message, type: typeOf(status), param: field ? paramOf(field.field) : null, code: itsWords[code] ?? code };
}

export const tellOpenAi: TellRefusal = (refusal) => ({
  body: { error: errorOf(refusal) },
  contentType: "application/json; charset=utf-8",
});

/** What a model's failure is in this API; any other is the gateway's own as far as its client can tell. */
const failures: Readonly<Record<string, readonly [number, string]>> = {
  MODEL_RATE_LIMITED: [429, "rate_limit_exceeded"],
  MODEL_QUOTA: [429, "insufficient_quota"],
  MODEL_CONTEXT_OVERFLOW: [400, "context_length_exceeded"],
  MODEL_OVERLOADED: [503, "overloaded"],
  MODEL_TIMEOUT: [504, "upstream_timeout"],
};

/** The official client repeats what failed unless it is told not to: a turn that was stored would run twice. */
const noRetry = { "x-should-retry": "false" };

/** Why a turn that did not come to its answer has none, or not all of it. */
export function refusalOfTurn({ outcome, reason, detail, turnId }: TurnFinished, isKept: boolean): Refusal {
  const message = detail ?? `The turn ended as ${outcome}${reason === undefined ? "" : ` (${reason})`}.`;
  if (outcome === "busy") return new Refusal(409, "session_busy", message, { headers: retryLater });
  if (reason === "input_id_conflict") return new Refusal(409, "input_id_conflict", message, { headers: noRetry });
  if (outcome === "queued") return new Refusal(503, reason ?? "queued", message, { headers: retryLater });
  const facts = isKept ? { headers: noRetry } : {};
  if (outcome !== "failed") return new Refusal(503, `turn_${outcome}`, message, facts);
  if (isOfStore(reason))
    return turnId === undefined ? storeRefusal(reason) : new Refusal(503, reason.toLowerCase(), message, facts);
  const [status, code] = failures[reason ?? ""] ?? [
    reason?.startsWith("MODEL_") ? 502 : 500,
    (reason ?? "turn_failed").toLowerCase(),
  ];
  return new Refusal(status, code, message, facts);
}
