/**
 * One call's own signal. The turn's signal outlives hundreds of calls, and fetch leaves its listeners on the signal it
 * was given until the garbage collector finds them: so a call hands out a controller of its own, and keeps exactly one
 * listener on the turn's signal, which goes when the call ends.
 */
export interface ModelCall {
  /** Aborts with the caller's signal, and when the call is given up for another reason. */
  readonly signal: AbortSignal;
  /** Whether it was the caller who stopped it. */
  readonly isStopped: boolean;
  readonly hasEnded: boolean;
  /** Settles as `work` does, or rejects as soon as the call is stopped; what `work` yields later goes to `onLate`. */
  race<Value>(work: PromiseLike<Value>, onLate: (value: Value) => void): Promise<Value>;
  /** Calls `listener` when the caller stops the call; one at a time. */
  onStop(listener: () => void): void;
  /** The call is over. With `abandon`, what still runs of it is aborted, which closes its socket. Safe to repeat. */
  end(options?: { readonly abandon: boolean }): void;
}

export function openCall(stopSignal: AbortSignal | undefined): ModelCall {
  const controller = new AbortController();
  let hasEnded = false;
  let onStop: (() => void) | undefined;
  const stop = (): void => {
    controller.abort(stopSignal?.reason);
    onStop?.();
  };
  if (stopSignal?.aborted) controller.abort(stopSignal.reason);
  else stopSignal?.addEventListener("abort", stop, { once: true });

  return {
    signal: controller.signal,
    get isStopped() {
      return stopSignal?.aborted === true;
    },
    get hasEnded() {
      return hasEnded;
    },
    race: (work, onLate) =>
      new Promise((resolve, reject) => {
        let isLate = false;
        onStop = () => {
          isLate = true;
          reject(controller.signal.reason);
        };
        work.then(
          (value) => (isLate ? onLate(value) : resolve(value)),
          // A rejection after the stop is the stop's own echo; rejecting twice does nothing.
          (error: unknown) => reject(error),
        );
      }),
    onStop: (listener) => {
      onStop = listener;
    },
    end: ({ abandon } = { abandon: false }) => {
      hasEnded = true;
      onStop = undefined;
      stopSignal?.removeEventListener("abort", stop);
      if (abandon) controller.abort();
    },
  };
}
