import type { TurnInterrupt } from "@turnkeeper/interrupt";
import type { Cancel, Host } from "@turnkeeper/kernel";
import type { TurnLease } from "@turnkeeper/turn-lease";
import { reportDefect } from "./defect.ts";
import { durationText } from "./duration-text.ts";
import type { TurnDeps } from "./turn-machinery.ts";

/** How often a running turn looks for a stop request; a wake-up through the socket comes first. */
const stopPollMs = 250;

function endAtDeadline(host: Host, interrupt: TurnInterrupt, deadlineMs: number | undefined): Cancel {
  if (deadlineMs === undefined) return () => {};
  const message = `The turn did not end within ${durationText(deadlineMs)}, which was all the time it had.`;
  return host.timers.after(deadlineMs, () => {
    void interrupt.interrupt({ hard: true, reason: "deadline", by: "deadline", message });
  });
}

/**
 * What stops a turn from outside, until what it answers is called: the loss of its lease, its deadline, and what is asked
 * of it in the store.
 */
export function listenForStops(
  { store, host, scheduler, presence }: TurnDeps,
  turn: { readonly lease: TurnLease; readonly turnId: string; readonly deadlineMs: number | undefined },
  interrupt: TurnInterrupt,
): () => Promise<void> {
  const { lease, turnId } = turn;
  const { sessionId } = lease;
  const onLost = (): void => {
    const message = "The lease of this session was lost: the turn was stopped to protect the transcript.";
    void interrupt.interrupt({ hard: true, reason: "lease-lost", by: "lease", message });
  };
  if (lease.lost.aborted) onLost();
  lease.lost.addEventListener("abort", onLost, { once: true });

  const cancelDeadline = endAtDeadline(host, interrupt, turn.deadlineMs);

  let isReadingStop = false;
  const readStop = async (): Promise<void> => {
    if (isReadingStop) return;
    isReadingStop = true;
    try {
      const stop = await store.turns.stopRequest(sessionId, turnId);
      if (stop) void interrupt.interrupt({ hard: stop.hard, reason: stop.reason, by: stop.by });
    } catch (error) {
      // Asked again at the next poll. A store that stays broken speaks up at the next append and ends the lease; a
      // defect is said, and must not take down the process from within a wake-up.
      reportDefect(error);
    } finally {
      isReadingStop = false;
    }
  };
  const stopTask = scheduler.schedule(readStop, stopPollMs, { name: `stop requests of turn ${turnId}` });
  const wake = presence.onWake(sessionId, () => void readStop());
  return async () => {
    cancelDeadline();
    await stopTask.cancel();
    wake[Symbol.dispose]();
    lease.lost.removeEventListener("abort", onLost);
  };
}
