import type { LanguageModelV3CallOptions, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { describeModelError } from "@turnkeeper/models";
import type { ModelFailure, ResolvedModel } from "@turnkeeper/models";
import type { ProgressClock } from "@turnkeeper/turn-liveness";
import { StepReader } from "./step-reader.ts";
import type { StepEvent } from "./step-reader.ts";

/** One model step: everything that came, and what cut it, if anything did. */
export interface ModelStep {
  readonly reader: StepReader;
  readonly failure?: ModelFailure;
  /** The stop of the turn, or the loss of its lease: what came before it is a partial answer. */
  readonly stopped?: unknown;
}

/** A request to the model that was made. */
export interface EndedModelCall {
  readonly startedAtMs: number;
  readonly firstOutputMs: number | undefined;
  readonly step: ModelStep;
}

export interface ModelCallDeps {
  readonly host: Host;
  readonly clock: ProgressClock;
  readonly model: ResolvedModel;
  readonly signal: AbortSignal;
  /** Renews the lease where it is due and throws when the turn was stopped: the last veto before the request. */
  beforeSideEffect(): Promise<void>;
  onEvent(event: StepEvent): void;
  /** Told each request once it has ended, however it did. */
  onEnded?(call: EndedModelCall): void;
  onRetry(retry: { readonly attempt: number; readonly delayMs: number; readonly failure: ModelFailure }): void;
}

export interface ModelCallSettings {
  readonly attempts: number;
  /** How long the model may be silent before a stall is judged. */
  readonly silenceMs: number;
}

/** A provider that asks for more than this is not waited for: the turn fails and says when to come back. */
const longestRetryMs = 60_000;
const firstRetryMs = 500;
/**
 * Arguments that have begun to come and then stop coming: what a provider that sends a long value at once may take. It
 * ends the request, and never the turn as the bound of silence would.
 */
const argumentsSilenceMs = 300_000;
/**
 * A stream that always has a part at hand is read without leaving the microtasks: no timer, no signal and no stop would
 * come through until its end. So many parts take a few milliseconds.
 */
const partsBetweenBreaths = 256;

/**
 * How long before the same, or the rest of it, is asked for again; nothing where that is longer than a turn may wait.
 * Never before the provider's own word, and jittered over it too: turns that failed together must not come back together.
 */
export function backoffMs(host: Host, { retryAfterMs }: ModelFailure, attempt: number): number | undefined {
  const unit = host.random.unit();
  if (retryAfterMs === undefined) return Math.min(longestRetryMs, unit * firstRetryMs * 2 ** attempt);
  if (retryAfterMs > longestRetryMs) return undefined;
  return retryAfterMs + unit * Math.max(firstRetryMs, retryAfterMs / 4);
}

/**
 * Waits before the request is made anew, and ends early with the signal's reason. The wait is declared, and taken off the
 * silence when it is over: what the provider asked for is not what the model was silent for.
 */
export async function pause(
  deps: Pick<ModelCallDeps, "host" | "clock" | "signal">,
  { ms, attempt }: { readonly ms: number; readonly attempt: number },
): Promise<void> {
  using _wait = deps.clock.declareWait({ kind: "model", name: `retry ${attempt}`, boundMs: ms + 1000 });
  const { signal } = deps;
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      cancel();
      reject(signal.reason as Error);
    };
    const cancel = deps.host.timers.after(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
  deps.clock.excuse(ms);
}

/** Settles with `promise`, or rejects with the signal's reason as soon as it aborts. */
export async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    stop = () => signal.removeEventListener("abort", onAbort);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    stop();
  }
}

/** Lets the event loop run whatever is due. */
const breathe = ({ timers }: Host): Promise<void> => new Promise((resolve) => void timers.soon(resolve));

/** Reads the stream to its end; on abort the pending read ends at once, whether or not the provider heard the signal. */
async function readStream(
  deps: ModelCallDeps,
  stream: ReadableStream<LanguageModelV3StreamPart>,
  reader: StepReader,
  argumentsMs: number,
): Promise<void> {
  const parts = stream.getReader();
  const cancel = (reason: unknown): void => void parts.cancel(reason).catch(() => {});
  const onAbort = (): void => cancel(deps.signal.reason);
  deps.signal.addEventListener("abort", onAbort, { once: true });
  // The stop may have come in the moment in which the stream did.
  if (deps.signal.aborted) onAbort();
  let stuck: CodedError | undefined;
  const giveUp = (): void => {
    stuck = stuckArguments(deps.model.id, argumentsMs);
    cancel(stuck);
  };
  let disarm = (): void => {};
  // A process that was stopped, or busy, has parts that came meanwhile: they are read before anybody is called silent.
  const judge = (): void => void (disarm = deps.host.timers.afterPoll(giveUp));
  let partCount = 0;
  try {
    for (let next = await parts.read(); !next.done; next = await parts.read()) {
      if (++partCount % partsBetweenBreaths === 0) await breathe(deps.host);
      const event = reader.read(next.value);
      disarm();
      if (reader.isInArguments) disarm = deps.host.timers.after(argumentsMs, judge);
      if (event === undefined) continue;
      if (event.kind === "error") throw event.error;
      deps.clock.progress("model", event.kind);
      deps.onEvent(event);
    }
    if (stuck) throw stuck;
    // An ended read after a stop is the cancel's doing, unless the answer had been complete.
    if (reader.finishReason === undefined) deps.signal.throwIfAborted();
  } finally {
    disarm();
    deps.signal.removeEventListener("abort", onAbort);
    parts.releaseLock();
  }
}

function stuckArguments(model: string, ms: number): CodedError {
  const message = `${model} began to write the arguments of a call and then sent nothing for ${Math.round(ms / 1000)} s.`;
  return new CodedError("MODEL_TIMEOUT", message, { context: { model, retryable: true } });
}

/** An answer without words and without a call. Whether the same request may do better depends on why it ended. */
function emptyAnswer(model: string, finishReason: StepReader["finishReason"]): CodedError {
  switch (finishReason) {
    case "length": {
      const message = `${model} used up its output limit before it said anything. Ask for less at a time, or raise the model's limit.`;
      return new CodedError("MODEL_EMPTY", message, { context: { model, retryable: false } });
    }
    case "content-filter": {
      const message = `${model} refused to answer: its provider's filter stopped it. Put the message in other words.`;
      return new CodedError("MODEL_EMPTY", message, { context: { model, retryable: false } });
    }
    default: {
      const message = `${model} gave an empty answer: no text and no call. Send the message again, or choose another model.`;
      return new CodedError("MODEL_EMPTY", message, { context: { model, retryable: true } });
    }
  }
}

async function tryOnce(
  deps: ModelCallDeps,
  settings: ModelCallSettings,
  request: LanguageModelV3CallOptions,
): Promise<ModelStep> {
  const reader = new StepReader(deps.model.price);
  try {
    await deps.beforeSideEffect();
  } catch (stopped) {
    return { reader, stopped };
  }
  const { clock } = deps.host;
  const [startedAtMs, sinceMs] = [clock.wallMs(), clock.monotonicMs()];
  let firstOutputMs: number | undefined;
  const onEvent = (event: StepEvent): void => {
    firstOutputMs ??= clock.monotonicMs() - sinceMs;
    deps.onEvent(event);
  };
  const step = await makeRequest({ ...deps, onEvent }, settings, request, reader);
  deps.onEnded?.({ startedAtMs, firstOutputMs, step });
  return step;
}

/**
 * Of a request that did not hear the stop: what it still brings is nobody's, and its transport would stay open unread. It is
 * cancelled once it is there, and not before. Never rejects.
 */
async function letGoWhenSettled(
  requested: PromiseLike<{ readonly stream: ReadableStream<LanguageModelV3StreamPart> }>,
  reason: unknown,
): Promise<void> {
  try {
    const { stream } = await requested;
    await stream.cancel(reason);
  } catch {
    // It ended by itself: there is nothing to let go of.
  }
}

/** Makes the request, and reads the answer. Never rejects. */
async function makeRequest(
  deps: ModelCallDeps,
  settings: ModelCallSettings,
  request: LanguageModelV3CallOptions,
  reader: StepReader,
): Promise<ModelStep> {
  // The bound is one of silence: it counts anew from every delta with content.
  using _wait = deps.clock.declareWait({ kind: "model", name: deps.model.id, boundMs: settings.silenceMs });
  try {
    const requested = Promise.resolve(deps.model.languageModel.doStream({ ...request, abortSignal: deps.signal }));
    const { stream } = await untilAborted(requested, deps.signal).catch((error: unknown) => {
      if (deps.signal.aborted) void letGoWhenSettled(requested, deps.signal.reason);
      throw error;
    });
    await readStream(deps, stream, reader, Math.min(argumentsSilenceMs, settings.silenceMs / 2));
    if (!reader.hasAnswer) throw emptyAnswer(deps.model.id, reader.finishReason);
    return { reader };
  } catch (error) {
    if (deps.signal.aborted) return { reader, stopped: deps.signal.reason };
    return { reader, failure: describeModelError(error) };
  }
}

/**
 * One model step with its retries. A failure is repeated only where a repeat may mend it and nothing of the answer has
 * come yet (reasoning is none): a repeated call would say it all again. Never rejects; a stop is part of the answer.
 */
export async function callModel(
  deps: ModelCallDeps,
  settings: ModelCallSettings,
  request: LanguageModelV3CallOptions,
): Promise<ModelStep> {
  for (let attempt = 1; ; attempt++) {
    const step = await tryOnce(deps, settings, request);
    const { failure } = step;
    if (
      !failure ||
      step.stopped !== undefined ||
      step.reader.hasAnswer ||
      !failure.retryable ||
      attempt >= settings.attempts
    )
      return step;
    const delayMs = backoffMs(deps.host, failure, attempt);
    if (delayMs === undefined) return step;
    deps.onRetry({ attempt, delayMs, failure });
    try {
      await pause(deps, { ms: delayMs, attempt });
    } catch (stopped) {
      return { reader: step.reader, stopped };
    }
  }
}
