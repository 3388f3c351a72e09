import { CodedError } from "@turnkeeper/kernel";

/** An RFC 9457 problem: what went wrong, by a stable code. */
export interface Problem {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
}

const titles: Readonly<Record<number, string>> = {
  400: "Bad request",
  401: "Not authorised",
  403: "Forbidden",
  404: "Not found",
  409: "Conflict",
  413: "Too large",
  415: "Unsupported media type",
  500: "Internal error",
  503: "Unavailable",
};

export function problem(status: number, code: string, detail: string): Problem {
  return { type: "about:blank", title: titles[status] ?? "Error", status, code, detail };
}

const inputCodes: ReadonlyMap<string, number> = new Map([
  ["SESSION_ID_INVALID", 400],
  ["INPUT_EMPTY", 400],
  ["INPUT_ID_INVALID", 400],
  ["INPUT_TOO_LARGE", 413],
  ["AGENT_CLOSED", 503],
]);

/** What a client is told of an error: a coded one by its code, anything else only that it was ours. */
export function problemOf(error: unknown): Problem {
  if (CodedError.is(error)) {
    const status = inputCodes.get(error.code) ?? (error.code.startsWith("STORE_") ? 503 : 500);
    return problem(status, error.code.toLowerCase(), error.message);
  }
  return problem(500, "internal", "The gateway failed; its log says more.");
}
