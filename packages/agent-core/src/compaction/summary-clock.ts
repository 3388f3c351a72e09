import type { Host } from "@turnkeeper/kernel";

/** A slow summary may take this many times the silence that is borne. */
const silencesMax = 5;

/** The signal of one summary: the turn's, and its own when the model is silent for too long or never ends. */
export interface SummaryClock extends Disposable {
  readonly signal: AbortSignal;
  /** Whether it was the clock, and not the turn's stop, that ended the summary. */
  readonly hasRunOut: boolean;
  /** Something of the summary came. */
  progress(): void;
}

export function startSummaryClock(host: Host, turnSignal: AbortSignal, silenceMs: number): SummaryClock {
  const { clock, timers } = host;
  const controller = new AbortController();
  const startedAtMs = clock.monotonicMs();
  let progressAtMs = startedAtMs;
  let hasRunOut = false;
  const stop = (): void => controller.abort(turnSignal.reason);
  // One timer that looks again, instead of a new one for every delta.
  const goesOn = (): boolean => {
    const restMs = Math.min(progressAtMs + silenceMs, startedAtMs + silenceMs * silencesMax) - clock.monotonicMs();
    if (restMs > 0) cancel = timers.after(restMs, look);
    return restMs > 0;
  };
  // What came while the process was stopped, or busy, is read before the model is called silent.
  const look = (): void => {
    if (!goesOn()) cancel = timers.afterPoll(judge);
  };
  const judge = (): void => {
    if (goesOn()) return;
    hasRunOut = true;
    controller.abort(new Error("The summary took too long."));
  };
  let cancel = timers.after(silenceMs, look);
  if (turnSignal.aborted) stop();
  turnSignal.addEventListener("abort", stop, { once: true });
  return {
    signal: controller.signal,
    get hasRunOut() {
      return hasRunOut && !turnSignal.aborted;
    },
    progress: () => {
      progressAtMs = clock.monotonicMs();
    },
    [Symbol.dispose]: () => {
      cancel();
      turnSignal.removeEventListener("abort", stop);
    },
  };
}
