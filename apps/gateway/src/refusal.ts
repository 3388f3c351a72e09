import { CodedError } from "@turnkeeper/kernel";
import { isOfStore, storeRefuses } from "./told-end.ts";

/** An RFC 9457 problem: what went wrong, by a stable code. */
export interface Problem {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** What of the request does not fit, where the problem is one of its fields. */
  readonly fields?: readonly FieldProblem[];
  /** The request's own id: the gateway's log has more under it. */
  readonly requestId?: string;
}

export interface FieldProblem {
  /** Dotted, from the body, query or path: `input`, `query.limit`. */
  readonly field: string;
  readonly message: string;
}

interface RefusalFacts {
  readonly headers?: Readonly<Record<string, string>>;
  readonly fields?: readonly FieldProblem[];
  readonly cause?: unknown;
}

/** What a client is told in place of an answer. Its message is fit for strangers. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fields: readonly FieldProblem[] | undefined;

  constructor(status: number, code: string, detail: string, facts: RefusalFacts = {}) {
    super(detail, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = "Refusal";
    this.status = status;
    this.code = code;
    this.headers = facts.headers ?? {};
    this.fields = facts.fields;
  }
}

const titles: Readonly<Record<number, string>> = {
  400: "Bad request",
  401: "Not authorised",
  403: "Forbidden",
  404: "Not found",
  405: "Method not allowed",
  408: "Too slow",
  409: "Conflict",
  410: "Gone",
  413: "Too large",
  415: "Unsupported media type",
  429: "Too many requests",
  431: "Headers too large",
  500: "Internal error",
  503: "Unavailable",
};

export function problemOf(refusal: Refusal, requestId?: string): Problem {
  const { status, code, message, fields } = refusal;
  return {
    type: "about:blank",
    title: titles[status] ?? "Error",
    status,
    code,
    detail: message,
    ...(fields === undefined ? {} : { fields }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}

/** Seconds after which a client that was refused for now may try again. */
export const retryAfterS = 5;
export const retryLater: Readonly<Record<string, string>> = { "retry-after": String(retryAfterS) };

/** The mistakes of a caller that packages name; their messages say what to do and nothing of this machine. */
const callersMistakes: ReadonlyMap<string, number> = new Map([
  ["SESSION_ID_INVALID", 400],
  ["INPUT_EMPTY", 400],
  ["INPUT_ID_INVALID", 400],
  ["OPTION_INVALID", 400],
  ["TOOL_DUPLICATE", 400],
  ["INPUT_TOO_LARGE", 413],
]);

/** What the framework itself refuses, by its code, in our words where its own repeat what was sent. */
const frameworkRefusals: ReadonlyMap<string, { readonly code: string; readonly detail?: string }> = new Map([
  ["FST_ERR_CTP_BODY_TOO_LARGE", { code: "body_too_large" }],
  ["FST_ERR_CTP_INVALID_MEDIA_TYPE", { code: "media_type_unsupported", detail: "Send application/json." }],
  ["FST_ERR_BAD_URL", { code: "path_invalid", detail: "The path has a percent sign that encodes nothing." }],
]);

function refusalOfFramework(error: Error & { statusCode?: unknown; code?: unknown }): Refusal | undefined {
  const status = Number(error.statusCode);
  if (!(status >= 400 && status < 500)) return undefined;
  const { code = "request_invalid", detail = error.message } = frameworkRefusals.get(String(error.code)) ?? {};
  return new Refusal(status, code, detail);
}

/**
 * What a client is told of an error: a mistake of its own by code and message, the store's refusals by code alone (their
 * messages name files of this machine), anything else only that it was ours.
 */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (CodedError.is(error)) {
    const code = error.code.toLowerCase();
    const status = callersMistakes.get(error.code);
    if (status !== undefined) return new Refusal(status, code, error.message, { cause: error });
    if (error.code === "AGENT_CLOSED") return drainingRefusal();
    if (isOfStore(error.code)) return storeRefusal(error.code, error);
  } else if (error instanceof Error) {
    const told = refusalOfFramework(error);
    if (told) return told;
  }
  return new Refusal(500, "internal", "The gateway failed; its log says more.", { cause: error });
}

/** The store's refusal by its code alone: nothing was stored, and a repeat is safe. */
export function storeRefusal(code: string, cause?: unknown): Refusal {
  return new Refusal(503, code.toLowerCase(), storeRefuses, { cause, headers: retryLater });
}

export function drainingRefusal(): Refusal {
  return new Refusal(503, "draining", "The gateway is shutting down; ask another one, or again later.", {
    headers: { ...retryLater, connection: "close" },
  });
}
