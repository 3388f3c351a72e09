/**
 * The error that carries a caller's decision: a stable `code`, typed context, and a message that says what was
 * attempted, on what, and what to do.
 */

const marker = Symbol.for("turnkeeper.coded-error");

/** Extra facts of an error; they must survive `JSON.stringify` and hold no secret. */
export type ErrorContext = Readonly<Record<string, unknown>>;

export interface CodedErrorOptions {
  readonly cause?: unknown;
  readonly context?: ErrorContext;
}

/**
 * An error whose `code` names the one decision a caller can take on it.
 *
 * `CodedError.is` recognises instances of a second installed copy of this package too (a `Symbol.for` marker, not
 * `instanceof`), so a code survives duplicate installs. `toJSON` gives code, message and context, never the stack.
 */
export class CodedError<Code extends string = string> extends Error {
  readonly code: Code;
  readonly context: ErrorContext;

  constructor(code: Code, message: string, options: CodedErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CodedError";
    this.code = code;
    this.context = Object.freeze({ ...options.context });
    Object.defineProperty(this, marker, { value: true });
  }

  /** Whether `error` is a coded error (of any installed copy), and, when `code` is given, whether it is that one. */
  static is<Code extends string = string>(error: unknown, code?: Code): error is CodedError<Code> {
    if (!(error instanceof Error) || !(marker in error) || !("code" in error)) return false;
    return code === undefined || error.code === code;
  }

  toJSON(): { code: Code; message: string; context: ErrorContext } {
    return { code: this.code, message: this.message, context: this.context };
  }
}
