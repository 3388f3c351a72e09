/**
 * What an error of the server or of the way to it means to a caller: one code, one explanation, the next step. No
 * error of the driver leaves this package, and no message has a password in it.
 */
import { CodedError } from "@turnkeeper/kernel";
import type { StoreErrorCode } from "@turnkeeper/state-store";

export type StoreError = CodedError<StoreErrorCode>;

export function storeError(
  code: StoreErrorCode,
  message: string,
  context: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): StoreError {
  return new CodedError(code, message, cause === undefined ? { context } : { context, cause });
}

export function closedError(store: string): StoreError {
  return storeError("STORE_CLOSED", `This handle of the store ${store} is closed; open the store again to use it.`, {
    store,
  });
}

/** The SQLSTATE of an error of the server, or the errno name of one of the way to it. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

export function constraintOf(error: unknown): string | undefined {
  return error instanceof Error && "constraint" in error && typeof error.constraint === "string"
    ? error.constraint
    : undefined;
}

function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code);
}

/** How far a statement had come. On `answer` it had been sent, and whether it was committed is not known. */
export type Phase = "connect" | "answer" | "refused";

/** Whether the server itself said no: then nothing was written. A server that is going down may have committed first. */
export function phaseOf(error: unknown): Phase {
  const code = codeOf(error);
  return isSqlState(code) && !/^(08|57P0[124])/.test(code) ? "refused" : "answer";
}

interface Meaning {
  readonly pattern: RegExp;
  readonly code: StoreErrorCode;
  readonly what: string;
  readonly next: string;
  /** It may pass by itself, so the call is tried again for as long as it has patience. */
  readonly passes?: true;
}

const meanings: readonly Meaning[] = [
  {
    pattern: /^(28...|3D000)$/,
    code: "STORE_UNAVAILABLE",
    what: "the server does not let this user in, or has no such database",
    next: "Check user, password, database and pg_hba.conf.",
  },
  {
    pattern: /^(3F000|42P01|42883)$/,
    code: "STORE_UNAVAILABLE",
    what: "the schema is not there, or not whole",
    next: "Open the store again as a user who may create it.",
  },
  {
    pattern: /^42501$/,
    code: "STORE_READONLY",
    what: "this user may not do that",
    next: "Grant it the schema, its tables, its sequences and its functions.",
  },
  {
    pattern: /^25006$/,
    code: "STORE_READONLY",
    what: "the server takes no writes: it is a standby, or has become one",
    next: "Point the URL at the primary.",
    passes: true,
  },
  {
    pattern: /^(55P03|57014)$/,
    code: "STORE_BUSY",
    what: "somebody else kept what it needs locked for too long, or a timeout of the server cut it off",
    next: "Try again.",
    passes: true,
  },
  {
    pattern: /^(40001|40P01|53200|53300|53400|57P0[123])$/,
    code: "STORE_BUSY",
    what: "the server cannot take it now",
    next: "Try again; where it lasts, see whether the server has room for so many connections.",
    passes: true,
  },
  {
    pattern: /^53100$/,
    code: "STORE_FULL",
    what: "the server's disk is full",
    next: "Free some space there and repeat.",
  },
  {
    pattern: /^XX00[12]$/,
    code: "STORE_CORRUPT",
    what: "the server found its data damaged",
    next: "Stop what writes to it and restore from a backup or a standby.",
  },
  {
    pattern: /^(58|XX)/,
    code: "STORE_IO",
    what: "the server reported an error of its own or of its disk",
    next: "Read the server's log, then repeat.",
  },
  {
    // 54: more than a row, an index or a JSON value can hold.
    pattern: /^(2[123]|54)...$/,
    code: "STORE_CONTRACT",
    what: "what it asked for contradicts what is stored, or cannot be stored",
    next: "This is a fault of the calling program.",
  },
  {
    pattern: /^[0-9A-Z]{5}$/,
    code: "STORE_UNAVAILABLE",
    what: "the server refused it",
    next: "Read the server's log.",
  },
];

/** The way to the server is there, and not to be trusted, or not as safe as was asked for. */
const untrusted: Meaning = {
  pattern: /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|ERR_TLS_|ERR_SSL_|EPROTO$)/,
  code: "STORE_UNAVAILABLE",
  what: "the server's certificate is not to be trusted",
  next: "Renew it where it has expired; give the certificate of its authority as sslrootcert, and the name that is in its own as the host; sslmode=verify-full asks for both.",
};

/** What the driver says, without a code, of a server that was asked for TLS and has none. */
const withoutTls: Meaning = {
  pattern: /does not support SSL/,
  code: "STORE_UNAVAILABLE",
  what: "the server has no TLS, which the URL asks for",
  next: "Set it up there (ssl = on), or leave sslmode out of the URL where the way is safe without.",
};

/** What the driver says, without a code, of a server that asks for a password and is given none. */
const withoutPassword: Meaning = {
  pattern: /password must be a/,
  code: "STORE_UNAVAILABLE",
  what: "the server asks for a password, and none was given",
  next: "Give it in the URL, or as PGPASSWORD.",
};

/** Read by the driver before it goes anywhere. */
const unreadableFile: Meaning = {
  pattern: /\bopen '/,
  code: "STORE_UNAVAILABLE",
  what: "a file that the URL names cannot be read",
  next: "Check sslrootcert, sslcert and sslkey.",
};

const unreachable: Meaning = {
  pattern: /^/,
  code: "STORE_UNAVAILABLE",
  what: "the server could not be reached",
  next: "Check that it runs, and the way to it.",
  passes: true,
};

const unanswered: Meaning = {
  pattern: /^/,
  code: "STORE_IO",
  what: "the connection was lost before the answer came",
  next: "Read back, or repeat the call, which is harmless.",
  passes: true,
};

function meaningOf(error: unknown, phase: Phase): Meaning {
  const code = codeOf(error);
  if (phase === "answer") return unanswered;
  if (isSqlState(code)) return meanings.find(({ pattern }) => pattern.test(code)) ?? unreachable;
  if (untrusted.pattern.test(code)) return untrusted;
  const said = error instanceof Error ? error.message : "";
  return [withoutTls, withoutPassword, unreadableFile].find(({ pattern }) => pattern.test(said)) ?? unreachable;
}

/** Whether it may pass by itself. */
export function isPassing(error: unknown, phase: Phase): boolean {
  return !CodedError.is(error) && meaningOf(error, phase).passes === true;
}

export interface FailedCall {
  /** Says what was attempted: "append to session s1"; while opening, "open". */
  readonly attempt: string;
  /** The store's URL without its password. */
  readonly store: string;
  readonly phase: Phase;
}

const outcomes: Readonly<Record<Phase, string>> = {
  connect: " Nothing was written.",
  refused: " Nothing was written.",
  answer: " Whether it was written is unknown.",
};

/** Tells an error as a `CodedError`; a coded error passes unchanged. */
export function explain(error: unknown, { attempt, store, phase }: FailedCall): StoreError {
  if (CodedError.is<StoreErrorCode>(error)) return error;
  const { code, what, next } = meaningOf(error, phase);
  const systemCode = codeOf(error);
  const said = error instanceof Error && error.message !== "" ? `: ${error.message}` : "";
  return storeError(
    code,
    `Could not ${attempt} ${attempt === "open" ? "" : "in "}the store ${store}: ${what} (${systemCode || "no code"}${said}).${outcomes[phase]} ${next}`,
    { store, systemCode, isIndeterminate: phase === "answer" },
    error,
  );
}
