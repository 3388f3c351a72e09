import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";

/** After so many tries the store is not unlucky but broken. */
const triesMax = 6;
/** Between two tries; a busy store has been patient for long already. */
const pauseMs = 25;

/**
 * Repeats a write until its outcome is known: `STORE_IO` leaves it open whether the commit stands, and once it is open
 * a busy store does not close it. The store answers a repetition with what stands, so only for writes that are safe to
 * repeat. An error that leaves nothing open, or a store that goes on failing, is thrown.
 */
export async function withKnownOutcome<Result>(host: Host, write: () => Promise<Result>): Promise<Result> {
  let isOpen = false;
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      isOpen ||= CodedError.is(error, "STORE_IO");
      const mayClose = CodedError.is(error, "STORE_IO") || CodedError.is(error, "STORE_BUSY");
      if (!isOpen || !mayClose || tries >= triesMax) throw error;
      await new Promise<void>((resolve) => host.timers.after(pauseMs, resolve));
    }
  }
}
