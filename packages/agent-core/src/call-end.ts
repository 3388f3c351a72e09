import { CodedError, messageOf } from "@turnkeeper/kernel";
import { unansweredCalls } from "@turnkeeper/state-store";
import type { Runner, SuspendedTurn } from "@turnkeeper/state-store";
import { durationText } from "./duration-text.ts";
import type { HolderView } from "./events.ts";
import type { CallEnd, TurnCall } from "./turn-call.ts";

export function endOfStoreFailure(error: unknown): CallEnd {
  if (CodedError.is(error)) return { outcome: "failed", reason: error.code, detail: error.message };
  return { outcome: "failed", reason: "INTERNAL", detail: messageOf(error) };
}

/** The store failed behind the message's acceptance, and does not take the message back: to repeat it is to run it twice. */
export function endThoughStored(error: unknown): CallEnd {
  const { detail, ...end } = endOfStoreFailure(error);
  const stored =
    "The message itself had been stored and could not be taken back: it runs when the session is used next, so do not send it again.";
  return { ...end, detail: `${detail} ${stored}` };
}

/** A soft stop of a call whose input waits. */
export const leftInQueue: CallEnd = {
  outcome: "queued",
  reason: "user-stop",
  detail: "Stopped waiting. The message stays in the queue.",
};

/** The agent was closed while the input waited. */
export const shutDownEnd: CallEnd = {
  outcome: "queued",
  reason: "shutdown",
  detail: "Shut down before its turn began. The message stays in the queue.",
};

/** The agent was closed while the input's turn runs in another process. */
export const leftTurn: CallEnd = {
  ...shutDownEnd,
  detail: "Shut down. The turn runs on in its process; ask with the same input id how it ended.",
};

/** The agent was closed while the input's turn waits for approval. */
export const leftSuspended: CallEnd = {
  ...shutDownEnd,
  detail: "Shut down. The turn waits for approval, and goes on where the session is used next once all is answered.",
};

/** The turn was asked to stop hard, and its process does not answer. */
export function unansweredStopEnd(holder: HolderView): CallEnd {
  const detail = `The turn was asked to stop, but its process (pid ${holder.pid} on ${holder.host}) does not answer; it ends once that goes on. Ask with the same input id how it ended.`;
  return { outcome: "queued", reason: "user-stop", detail };
}

/** Nothing became of the input; the same call may be made again. */
export const sessionBusy: CallEnd = { outcome: "busy", reason: "session_busy", retryable: true };

/** So many inputs wait for the session that nothing was stored. */
export function queueFullEnd(waitingCount: number): CallEnd {
  const detail = `${waitingCount} inputs wait on this session; try later.`;
  return { outcome: "busy", reason: "queue_full", retryable: true, detail };
}

function heldBy(holder: HolderView, { instanceId }: Pick<Runner, "instanceId">): string {
  if (holder.instanceId === instanceId) return "held by this process, for another message";
  return `held by pid ${holder.pid} on ${holder.host}`;
}

/** `reject` on a busy session: nothing was stored. */
export function refusedEnd(
  holder: HolderView | undefined,
  runner: Pick<Runner, "instanceId">,
  suspended?: SuspendedTurn,
): CallEnd {
  const [asked] = suspended ? unansweredCalls(suspended) : [];
  if (asked?.child)
    return {
      ...sessionBusy,
      detail: `It waits for the subagent in session ${asked.child.sessionId}, which waits for approval.`,
    };
  const what = asked?.resultUntilMs === undefined ? "approval" : "the result";
  if (asked) return { ...sessionBusy, detail: `It waits for ${what} of ${asked.name} (call ${asked.callId}).` };
  return { ...sessionBusy, ...(holder ? { detail: `It is ${heldBy(holder, runner)}. Try again.` } : {}) };
}

/** The patience of a call ran out, and its input with it. */
export function busyEnd({ holder, request }: TurnCall, runner: Pick<Runner, "instanceId">): CallEnd {
  const held = holder ? ` It is ${heldBy(holder, runner)}.` : "";
  const detail = `Session ${request.sessionId} stayed busy for ${durationText(request.waitMs)}; the message was not processed. Send it again.${held}`;
  return { ...sessionBusy, detail };
}

/** The patience of a call ran out that follows another's input; the input goes its way. */
export function unfollowedEnd({ holder, request }: TurnCall): CallEnd {
  const by = holder ? ` by pid ${holder.pid} on ${holder.host}` : "";
  const detail = `The message is handled${by} and did not end within ${durationText(request.waitMs)}; nothing was changed. Ask again with the same input id.`;
  return { ...sessionBusy, detail };
}
