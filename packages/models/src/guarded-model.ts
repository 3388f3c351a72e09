/**
 * A language model whose calls end in one of two ways: with a `finish` part that the provider meant, or with a
 * `CodedError`. A stream that merely stops is never an answer.
 *
 * | the provider's stream                       | what comes out                                       |
 * | ------------------------------------------- | ---------------------------------------------------- |
 * | text, reasoning, tool input                 | the same parts, at once                              |
 * | a tool call                                 | the same part, once the stream has ended well        |
 * | `finish` with the provider's reason         | the held tool calls, `finish`, the end               |
 * | `finish` with `stop` after half a sentence  | as `length`, from servers that are known for it      |
 * | `finish` without one, or no `finish`        | MODEL_STREAM_CUT                                     |
 * | `finish` without text and without a call    | MODEL_EMPTY (not after length or content-filter)     |
 * | an `error` part, a throw                    | the error it means; the connection is closed         |
 * | anything, after the caller's signal aborted | MODEL_ABORTED, at once; the connection is closed     |
 */
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolCall,
} from "@ai-sdk/provider";
import type { CodedError, Timers } from "@turnkeeper/kernel";
import { isContent, verdictOn } from "./answer-ending.ts";
import type { CallSubject } from "./call-subject.ts";
import { drain } from "./drain.ts";
import type { ModelErrorCode } from "./errors.ts";
import { openCall } from "./model-call.ts";
import type { ModelCall } from "./model-call.ts";
import { callError, plainError } from "./model-failure.ts";
import { meantReason, tailOf } from "./silent-cut.ts";

export interface Guard {
  readonly subject: CallSubject;
  /** Sent with streaming calls. */
  readonly streamHeaders?: Readonly<Record<string, string>>;
  /** Every format this package resolves says why it ended; another model's may not. */
  readonly alwaysGivesReason: boolean;
  /** Whether it may report `stop` for an answer that it cut; then a text that stops in the middle ends with `length`. */
  readonly mayCutSilently?: boolean;
  /** Makes of each request what the model takes. */
  readonly shape?: (request: LanguageModelV3CallOptions) => LanguageModelV3CallOptions;
  /** With timers, a finished answer's connection is left to end by itself and can be used again. */
  readonly timers?: Timers;
  isClosed(): boolean;
}

type Parts = ReadableStream<LanguageModelV3StreamPart>;
type Controller = ReadableStreamDefaultController<LanguageModelV3StreamPart>;

// Cancelling what has already failed, or was aborted, fails in its turn; the first failure is the one that is told.
function nothing(): void {}

/** Makes the two ways of ending true for any model. Keeps no state between calls; calls may overlap. */
export function guardModel(inner: LanguageModelV3, guard: Guard): LanguageModelV3 {
  const errorFor = (
    error: unknown,
    call: ModelCall,
    options: LanguageModelV3CallOptions,
  ): CodedError<ModelErrorCode> => {
    if (call.isStopped) return plainError("MODEL_ABORTED", guard.subject, options.abortSignal?.reason);
    if (guard.isClosed()) return plainError("MODEL_CLOSED", guard.subject);
    return callError(error, guard.subject, options.prompt);
  };

  const { shape = (request) => request } = guard;

  const run = async <Result>(
    options: LanguageModelV3CallOptions,
    call: ModelCall,
    work: (signal: AbortSignal) => PromiseLike<Result>,
    onLate: (result: Result) => void,
  ): Promise<Result> => {
    try {
      if (guard.isClosed()) throw plainError("MODEL_CLOSED", guard.subject);
      call.signal.throwIfAborted();
      return await call.race(work(call.signal), onLate);
    } catch (error) {
      call.end({ abandon: true });
      throw errorFor(error, call, options);
    }
  };

  return {
    specificationVersion: "v3",
    provider: inner.provider,
    modelId: inner.modelId,
    get supportedUrls() {
      return inner.supportedUrls;
    },
    async doGenerate(options) {
      const call = openCall(options.abortSignal);
      const result = await run(
        options,
        call,
        (abortSignal) => inner.doGenerate({ ...shape(options), abortSignal }),
        nothing,
      );
      call.end();
      const verdict = verdictOn(result.finishReason, result.content.some(isContent), guard.alwaysGivesReason);
      if (verdict !== undefined) throw plainError(verdict, guard.subject);
      const last = result.content.at(-1);
      if (!guard.mayCutSilently || last?.type !== "text") return result;
      return { ...result, finishReason: meantReason(result.finishReason, tailOf(last.text)) };
    },
    async doStream(options) {
      const call = openCall(options.abortSignal);
      const headers = { ...guard.streamHeaders, ...options.headers };
      const result = await run(
        options,
        call,
        (abortSignal) => inner.doStream({ ...shape({ ...options, headers }), abortSignal }),
        (late) => void late.stream.cancel().catch(nothing),
      );
      return { ...result, stream: guardStream(result.stream, call, guard, (error) => errorFor(error, call, options)) };
    },
  };
}

function guardStream(
  source: Parts,
  call: ModelCall,
  guard: Guard,
  errorFor: (error: unknown) => CodedError<ModelErrorCode>,
): Parts {
  const reader = source.getReader();
  // Some SDKs complete a call whose arguments were cut; only a stream that ended well shows that they are all there.
  const held: LanguageModelV3ToolCall[] = [];
  let hasContent = false;
  /** How the answer's text ends so far; empty behind anything else. */
  let tail = "";

  const fail = (controller: Controller, error: CodedError<ModelErrorCode>): void => {
    call.end({ abandon: true });
    controller.error(error);
    void reader.cancel().catch(nothing);
  };

  const finish = (controller: Controller, part: Extract<LanguageModelV3StreamPart, { type: "finish" }>): void => {
    const verdict = verdictOn(part.finishReason, hasContent || held.length > 0, guard.alwaysGivesReason);
    if (verdict !== undefined) return fail(controller, plainError(verdict, guard.subject));
    call.end();
    for (const toolCall of held) controller.enqueue(toolCall);
    const isMeant = !guard.mayCutSilently || held.length > 0;
    controller.enqueue(isMeant ? part : { ...part, finishReason: meantReason(part.finishReason, tail) });
    controller.close();
    if (guard.timers) drain(reader, guard.timers);
    else void reader.cancel().catch(nothing);
  };

  const readOn = (controller: Controller): Promise<void> =>
    reader.read().then(
      (step) => {
        // Stopped or cancelled in the meantime: the stream has had its end.
        if (call.hasEnded) return undefined;
        if (step.done) return fail(controller, plainError("MODEL_STREAM_CUT", guard.subject));
        return take(controller, step.value);
      },
      (error: unknown) => (call.hasEnded ? undefined : fail(controller, errorFor(error))),
    );

  /** Hands the part on, or reads the next one in place of one that is held. */
  const take = (controller: Controller, part: LanguageModelV3StreamPart): Promise<void> | void => {
    if (part.type === "error") return fail(controller, errorFor(part.error));
    if (part.type === "finish") return finish(controller, part);
    if (part.type === "tool-call" && part.providerExecuted !== true) {
      held.push(part);
      return readOn(controller);
    }
    hasContent ||= isContent(part);
    if (guard.mayCutSilently) {
      if (part.type === "text-delta") tail = tailOf(tail, part.delta);
      else if (isContent(part)) tail = "";
    }
    return controller.enqueue(part);
  };

  return new ReadableStream<LanguageModelV3StreamPart>(
    {
      start(controller) {
        call.onStop(() => fail(controller, errorFor(call.signal.reason)));
        if (call.isStopped) fail(controller, errorFor(call.signal.reason));
      },
      // One promise a part, not the four of an async function: each delta of each answer comes by here.
      pull: (controller) => (call.hasEnded ? undefined : readOn(controller)),
      cancel(reason) {
        call.end({ abandon: true });
        // Not waited for: the abort has closed the connection, and a model that never lets go must not hold its reader.
        void reader.cancel(reason).catch(nothing);
      },
    },
    // Nothing is read ahead: a slow consumer slows the provider's socket down, not this process's memory up.
    { highWaterMark: 0 },
  );
}
