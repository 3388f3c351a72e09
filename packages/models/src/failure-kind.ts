import type { ModelErrorCode } from "./errors.ts";
import type { FailureFacts } from "./failure-facts.ts";

/** What a failure is to the caller: its code, and whether the same call may succeed later. */
export interface FailureKind {
  readonly code: ModelErrorCode;
  readonly retryable: boolean;
}

const retryableCodes: ReadonlySet<ModelErrorCode> = new Set([
  "MODEL_RATE_LIMITED",
  "MODEL_OVERLOADED",
  "MODEL_SERVER",
  "MODEL_UNREACHABLE",
  "MODEL_TIMEOUT",
  "MODEL_STREAM_CUT",
  "MODEL_EMPTY",
]);

const kind = (code: ModelErrorCode, retryable: boolean = retryableCodes.has(code)): FailureKind => ({
  code,
  retryable,
});

/**
 * Failures of the way to a model, or of that model: another one may well answer the same request. What is wrong with the
 * request itself, and what the caller did, is the same everywhere.
 */
const routeCodes: ReadonlySet<ModelErrorCode> = new Set([
  "MODEL_UNREACHABLE",
  "MODEL_AUTH",
  "MODEL_QUOTA",
  "MODEL_NOT_FOUND",
  "MODEL_BAD_RESPONSE",
  "MODEL_CREDENTIAL_INVALID",
  "MODEL_CREDENTIAL_BUSY",
  "MODEL_CREDENTIAL_UNAVAILABLE",
]);

export const isOfRoute = ({ code, retryable }: FailureKind): boolean => retryable || routeCodes.has(code);

/** The kind that a code is of by itself. */
export const kindOfCode = (code: ModelErrorCode): FailureKind => kind(code);

// Words with which providers prove that the prompt was too long: OpenAI, DeepSeek and vLLM; Anthropic; xAI; llama.cpp;
// Mistral; Google; Bedrock; Anthropic with max_tokens. A mere 400 proves nothing, and compaction must not be guessed.
const overflowWords =
  /maximum context length|prompt is too long|maximum prompt length|exceeds? the (?:available )?context (?:size|length|window)|too large for model with|input token count|input is too long|exceed context limit/i;
const overflowTokens = /context_length_exceeded|exceed_context_size|request_too_large/;

const tokenKinds: readonly (readonly [RegExp, ModelErrorCode])[] = [
  [/insufficient_(?:quota|balance|funds)|billing|payment_required|credit/, "MODEL_QUOTA"],
  [/rate_limit|too_many_requests|resource_exhausted|throttl/, "MODEL_RATE_LIMITED"],
  [overflowTokens, "MODEL_CONTEXT_OVERFLOW"],
  [/overloaded|unavailable/, "MODEL_OVERLOADED"],
  [/authentication|invalid_api_key|unauthorized|permission/, "MODEL_AUTH"],
  [/model_not_found|not_found/, "MODEL_NOT_FOUND"],
];

// Names that say little when there is a status, and all there is when an error comes inside a stream.
const streamTokenKinds: readonly (readonly [RegExp, ModelErrorCode])[] = [
  [/timeout/, "MODEL_TIMEOUT"],
  [/invalid|bad_?request|unsupported/, "MODEL_BAD_REQUEST"],
  [/./, "MODEL_SERVER"],
];

const match = (table: readonly (readonly [RegExp, ModelErrorCode])[], text: string): FailureKind | undefined => {
  const row = table.find(([pattern]) => pattern.test(text));
  return row && kind(row[1]);
};

function kindOfStatus(status: number): FailureKind {
  switch (status) {
    case 401:
    case 403:
      return kind("MODEL_AUTH");
    case 402:
      return kind("MODEL_QUOTA");
    case 404:
    case 410:
      return kind("MODEL_NOT_FOUND");
    case 408:
    case 504:
    case 524:
      return kind("MODEL_TIMEOUT");
    case 409:
    case 425:
      return kind("MODEL_SERVER");
    case 413:
      return kind("MODEL_CONTEXT_OVERFLOW");
    case 429:
      return kind("MODEL_RATE_LIMITED");
    case 503:
    case 529:
      return kind("MODEL_OVERLOADED");
    default:
      if (status >= 500) return kind("MODEL_SERVER");
      return kind(status >= 400 ? "MODEL_BAD_REQUEST" : "MODEL_BAD_RESPONSE");
  }
}

const networkCode =
  /^(?:ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_\w+|E(?:HOST|NET)(?:UNREACH|DOWN)|EADDRNOTAVAIL|ENETRESET|UND_ERR_(?:SOCKET|CONNECT_TIMEOUT|RES_CONTENT_LENGTH_MISMATCH))$/;
/** This process may open no more files, so no connection either: others end, and theirs are free again. */
export const exhaustionCode: RegExp = /^E[MN]FILE$/;
/** The proxy answered in the server's place: 407 and 403 stay, its own troubles pass. */
const proxyCode = /^ERR_PROXY_\d{3}$/;
const certificateCode = /CERT|SELF_SIGNED|^ERR_TLS|^ERR_SSL|^EPROTO$|^UNABLE_TO_/;
const protocolCode = /^HPE|^UND_ERR_HEADERS_OVERFLOW$|^Z_/;

function kindOfSystemCode(code: string, hasReply: boolean): FailureKind | undefined {
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") return kind("MODEL_TIMEOUT");
  if (code === "UND_ERR_DESTROYED" || code === "UND_ERR_CLOSED") return kind("MODEL_CLOSED");
  // Nothing repairs a certificate by trying again.
  if (certificateCode.test(code)) return kind("MODEL_UNREACHABLE", false);
  if (exhaustionCode.test(code)) return kind("MODEL_UNREACHABLE");
  if (proxyCode.test(code)) return kind("MODEL_UNREACHABLE", code >= "ERR_PROXY_5");
  if (networkCode.test(code)) return kind(hasReply ? "MODEL_STREAM_CUT" : "MODEL_UNREACHABLE");
  if (protocolCode.test(code)) return kind(hasReply ? "MODEL_STREAM_CUT" : "MODEL_BAD_RESPONSE");
  return undefined;
}

const nameKinds: readonly (readonly [RegExp, FailureKind])[] = [
  [/^(?:AbortError|TimeoutError|ResponseAborted)$/, kind("MODEL_ABORTED")],
  [/^UnreadableReply$/, kind("MODEL_BAD_RESPONSE")],
  [/^AI_EmptyResponseBodyError$/, kind("MODEL_STREAM_CUT")],
  // One event of a live stream that is no JSON: a hiccup, unlike a page that is no stream at all.
  [/^AI_(?:JSONParse|TypeValidation|InvalidResponseData)Error$/, kind("MODEL_BAD_RESPONSE", true)],
  [/^AI_LoadAPIKeyError$/, kind("MODEL_KEY_MISSING")],
  [/^AI_NoSuchModelError$/, kind("MODEL_NOT_FOUND")],
  [/^AI_(?:UnsupportedFunctionality|InvalidPrompt|InvalidArgument)Error$/, kind("MODEL_BAD_REQUEST")],
];

/** Decides what a failure is, from the most specific evidence to the least. */
export function kindOf(facts: FailureFacts): FailureKind {
  const tokens = facts.tokens.join(" ").toLowerCase();
  const words = facts.words ?? "";
  const byToken = match(tokenKinds, tokens);
  if (byToken?.code === "MODEL_RATE_LIMITED" || byToken?.code === "MODEL_QUOTA") return byToken;
  if (/credit balance is too low|insufficient balance/i.test(words)) return kind("MODEL_QUOTA");
  if (facts.status !== 429 && overflowWords.test(words)) return kind("MODEL_CONTEXT_OVERFLOW");
  if (byToken) return byToken;
  // The Anthropic client makes a 500 of any error event that comes first in a stream.
  if ((facts.status ?? 0) >= 500 && /invalid_request/.test(tokens)) return kind("MODEL_BAD_REQUEST");
  if (facts.status !== undefined && (facts.status < 200 || facts.status >= 300)) return kindOfStatus(facts.status);
  if (facts.hasNoEnding) return kind("MODEL_STREAM_CUT");
  // undici's parser does not always give its errors a code.
  const systemCode = facts.systemCode ?? (facts.errorNames.includes("HTTPParserError") ? "HPE" : undefined);
  if (systemCode !== undefined) {
    const bySystem = kindOfSystemCode(systemCode, facts.status !== undefined);
    if (bySystem) return bySystem;
  }
  const byName = nameKinds.find(([pattern]) => facts.errorNames.some((name) => pattern.test(name)));
  if (byName) return byName[1];
  const inStream = tokens === "" ? undefined : match(streamTokenKinds, tokens);
  if (inStream) return inStream;
  return kind(words === "" ? "MODEL_FAILED" : "MODEL_SERVER");
}
