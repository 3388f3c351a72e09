import type { Timers } from "@turnkeeper/kernel";

/** A healthy server ends its body in the packet after its last event; a second is ample, and short beside a turn. */
export const drainMs = 1000;

/**
 * Lets a finished answer's body end by itself, so that its connection can be used again, and cancels it when it does
 * not. Returns at once and never throws; the timer does not keep the process alive.
 */
export function drain(reader: ReadableStreamDefaultReader<unknown>, timers: Timers): void {
  const stop = timers.after(drainMs, () => void reader.cancel().catch(nothing), { keepAlive: false });
  const readOn = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  // The answer is complete: an error behind its end concerns nobody.
  void readOn().catch(nothing).finally(stop);
}

function nothing(): void {}
