import { CodedError } from "@turnkeeper/kernel";
import type { ModelErrorCode } from "./errors.ts";
import { readFacts } from "./failure-facts.ts";
import type { FailureFacts } from "./failure-facts.ts";
import { isOfRoute, kindOf, kindOfCode } from "./failure-kind.ts";
import type { FailureKind } from "./failure-kind.ts";
import { failureSentence } from "./failure-sentence.ts";
import type { CallSubject } from "./call-subject.ts";
import { isOwnWord, quotable, textsWithin } from "./quotation.ts";
import { retryAfterMs } from "./retry-after.ts";

/** A failed model call, as a caller decides on it and a person reads it. */
export interface ModelFailure {
  readonly code: ModelErrorCode;
  /** Whether the same call may succeed later. Whether to repeat it is the caller's business: this package never does. */
  readonly retryable: boolean;
  /** Whether it is of this model or the way to it, so that another model may answer the same request. */
  readonly isOfRoute: boolean;
  /** How long the provider asked to wait, in milliseconds; unbounded, as it came. */
  readonly retryAfterMs?: number;
  /** One line: the model, what happened, what to do. Holds no key, no header and nothing of the prompt. */
  readonly message: string;
}

const nobody: CallSubject = { id: "The model", secrets: [] };

function evidenceOf(facts: FailureFacts, isOwn: (token: string) => boolean): string[] {
  const { status, tokens, systemCode } = facts;
  const answeredWell = status !== undefined && status >= 200 && status < 300;
  return [
    ...(status === undefined || answeredWell ? [] : [`HTTP ${status}`]),
    ...(systemCode === undefined ? [] : [systemCode]),
    ...new Set(tokens.filter((token) => token !== String(status) && isOwn(token))),
  ];
}

// Providers repeat parts of the key when they refuse it, and their words add nothing there.
const unquoted: ReadonlySet<ModelErrorCode> = new Set(["MODEL_AUTH", "MODEL_ABORTED", "MODEL_CLOSED"]);

/** Describes `error` as a failure of a call by `subject` that sent `request`. */
export function failureOf(error: unknown, subject: CallSubject, request?: unknown, kind?: FailureKind): ModelFailure {
  const facts = readFacts(error);
  const { code, retryable } = kind ?? kindOf(facts);
  const waitMs = retryAfterMs(facts.headers);
  const promptTexts = textsWithin([request, facts.requestTexts()]);
  const { secrets } = subject;
  const quote = facts.words === undefined || unquoted.has(code) ? "" : quotable(facts.words, secrets, promptTexts);
  const evidence = evidenceOf(facts, (token) => isOwnWord(token, secrets, promptTexts));
  const message = failureSentence(code, { subject, facts, evidence, quote, waitMs });
  const wait = waitMs === undefined ? {} : { retryAfterMs: waitMs };
  return { code, retryable, isOfRoute: isOfRoute({ code, retryable }), ...wait, message };
}

const coded = (
  { code, retryable, retryAfterMs: waitMs, message }: ModelFailure,
  subject: CallSubject,
  cause?: unknown,
): CodedError<ModelErrorCode> => {
  const context = { model: subject.id, retryable, ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) };
  return new CodedError(code, message, cause === undefined ? { context } : { context, cause });
};

const isModelError = (error: unknown): error is CodedError<ModelErrorCode> =>
  CodedError.is(error) && error.code.startsWith("MODEL_");

/** The error of a call that failed in a way this package saw by itself. `cause` is the reason of a stop. */
export const plainError = (code: ModelErrorCode, subject: CallSubject, cause?: unknown): CodedError<ModelErrorCode> =>
  coded(failureOf(cause, subject, undefined, kindOfCode(code)), subject, cause);

/**
 * The error of a call that failed with `error`. An SDK's error is not kept as the cause: it carries the whole request
 * and the reply's headers, and whoever logs a cause would log those. A defect's is, where it carries none.
 */
export function callError(error: unknown, subject: CallSubject, request: unknown): CodedError<ModelErrorCode> {
  if (isModelError(error)) return error;
  const failure = failureOf(error, subject, request);
  const isDefect =
    failure.code === "MODEL_FAILED" && subject.isForeign === true && readFacts(error).requestTexts().length === 0;
  return coded(failure, subject, isDefect ? error : undefined);
}

/**
 * Says what a failed model call means: a stable code, whether it may be repeated and when, and one clean line.
 *
 * Takes the errors of this package as they are (`resolveModel`'s and those of a resolved model's calls), and reads any
 * other error as well as it can: an AI SDK error, an `error` part of a stream, a network error. Never throws, never
 * quotes a key, a header or the prompt.
 */
export function describeModelError(error: unknown): ModelFailure {
  if (!isModelError(error)) return failureOf(error, nobody);
  const { code, context, message } = error;
  const waitMs = context["retryAfterMs"];
  const retryable = context["retryable"] === true;
  return {
    code,
    retryable,
    isOfRoute: isOfRoute({ code, retryable }),
    ...(typeof waitMs === "number" ? { retryAfterMs: waitMs } : {}),
    message,
  };
}
