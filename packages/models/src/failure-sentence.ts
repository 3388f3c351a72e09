import type { CallSubject } from "./call-subject.ts";
import { exhaustionCode } from "./failure-kind.ts";
import type { ModelErrorCode } from "./errors.ts";
import type { FailureFacts } from "./failure-facts.ts";

export interface SentenceParts {
  readonly subject: CallSubject;
  readonly facts: FailureFacts;
  /** Status, system code and the provider's tokens, already clean. */
  readonly evidence: readonly string[];
  /** The provider's words, already clean; empty when there is nothing to quote. */
  readonly quote: string;
  readonly waitMs: number | undefined;
}

const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(ms < 1000 ? 2 : 1))} s`;

interface Sentence {
  /** What the model, or the server in its place, did. */
  readonly what: string;
  readonly advice: string;
}

function keyAdvice({ subject: { key, hasCredential } }: SentenceParts): string {
  if (hasCredential) return "Its token cannot be refreshed: log in again, or check what the account may use.";
  if (!key) return "Check the key and what it is allowed to use.";
  if (!key.isSet) return `No key was sent, because ${key.name} is not set: set it.`;
  return `Check ${key.name} and what that key is allowed to use.`;
}

const later = ({ waitMs }: SentenceParts): string =>
  waitMs === undefined ? "Try again later." : `It asks to wait ${seconds(waitMs)}.`;
const at = ({ facts: { host } }: SentenceParts): string => (host === undefined ? "" : ` at ${host}`);

const through = ({ subject: { proxyHost } }: SentenceParts): string =>
  proxyHost === undefined ? "" : ` through the proxy ${proxyHost}`;

const sentences: Readonly<Partial<Record<ModelErrorCode, (parts: SentenceParts) => Sentence>>> = {
  MODEL_AUTH: (parts) => ({ what: "refused the request's key", advice: keyAdvice(parts) }),
  MODEL_KEY_MISSING: (parts) => ({ what: "was called without a key", advice: keyAdvice(parts) }),
  MODEL_QUOTA: () => ({
    what: "has no credit or quota left",
    advice: "Top up the account or choose another model; waiting does not help.",
  }),
  MODEL_NOT_FOUND: (parts) => ({
    what: `is not known${at(parts)}`,
    advice: "Check the model's name and the base URL (most servers want it to end with /v1).",
  }),
  MODEL_RATE_LIMITED: (parts) => ({ what: "is over its rate limit", advice: later(parts) }),
  MODEL_OVERLOADED: (parts) => ({ what: "is overloaded", advice: later(parts) }),
  MODEL_SERVER: (parts) => ({ what: "failed on the provider's side", advice: later(parts) }),
  MODEL_BAD_REQUEST: () => ({
    what: "refused the request as malformed or unsupported",
    advice: "Repeating it will not help: change the model or its settings.",
  }),
  MODEL_CONTEXT_OVERFLOW: () => ({
    what: "cannot take a conversation this long",
    advice: "Shorten or compact it, or choose a model with a larger context.",
  }),
  MODEL_UNREACHABLE: (parts) => ({
    what: `could not be reached${at(parts)}${through(parts)}`,
    advice: exhaustionCode.test(parts.facts.systemCode ?? "")
      ? "This process may open no more files: raise the limit (ulimit -n) and try again."
      : `Check that the server runs, the base URL${parts.subject.proxyHost === undefined ? "" : ", the proxy (HTTPS_PROXY, NO_PROXY)"} and the network.`,
  }),
  MODEL_TIMEOUT: ({ subject: { idleTimeoutMs } }) => ({
    what:
      idleTimeoutMs === undefined
        ? "was silent for too long"
        : `was silent for ${seconds(idleTimeoutMs)}, which is the bound`,
    advice: "Try again, or allow more with silence_s.",
  }),
  MODEL_STREAM_CUT: () => ({
    what: "stopped before the end of its answer",
    advice: "What had arrived is incomplete. Try again.",
  }),
  MODEL_BAD_RESPONSE: (parts) => ({
    what: badReply(parts),
    advice:
      "Check that the base URL is the API's own (most servers want it to end with /v1) and that no proxy stands between.",
  }),
  MODEL_EMPTY: () => ({
    what: "ended its answer without any text or tool call",
    advice: "Try again, or choose another model.",
  }),
  MODEL_ABORTED: () => ({ what: "was stopped before the end of its answer", advice: "" }),
  MODEL_CLOSED: () => ({ what: "was closed", advice: "Resolve it again to call it." }),
};

function badReply(parts: SentenceParts): string {
  const { status = 0, contentType } = parts.facts;
  if (status >= 300 && status < 400)
    return `was answered by a redirect${at(parts)}, which is not followed, so that the key stays with the server it was meant for`;
  if (contentType !== undefined) return `was answered with ${contentType} instead of an event stream`;
  return "was answered with something that is not its format";
}

/** The one line a person reads: the model, what it did, the evidence, what the provider said, what to do. */
export function failureSentence(code: ModelErrorCode, parts: SentenceParts): string {
  const { what, advice } = sentences[code]?.(parts) ?? {
    what: "failed in an unexpected way",
    advice: "This was not foreseen: please report it.",
  };
  const names = code === "MODEL_FAILED" ? parts.facts.errorNames.filter((name) => /^\w{1,64}$/.test(name)) : [];
  const evidence = [...parts.evidence, ...names].join(", ");
  const said = parts.quote === "" ? "" : ` It said: "${parts.quote}".`;
  return `${parts.subject.id} ${what}${evidence === "" ? "" : ` (${evidence})`}.${said}${advice === "" ? "" : ` ${advice}`}`;
}
