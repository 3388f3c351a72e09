/**
 * The machinery around one turn, whatever runs inside it: everything that can stop the turn ends in one interrupt,
 * nothing outlives the turn, and its end is one transaction.
 *
 * Owns TURN-1: however a turn ends, every waiter settles and no lease, timer, listener, socket or child is left.
 *
 * It leaves the right to run to turn-lease, the judgement on progress to turn-liveness, the order of a stop to
 * interrupt; it decides only who is wired to whom:
 *
 *   lease lost ──────────────▶ interrupt (hard, unconditional, `lease-lost`)
 *   watchdog + claim ────────▶ interrupt (hard, vetoed by progress, `stalled`)
 *   stop asked in the store ─▶ interrupt (as asked)
 *   deadline of the run ─────▶ interrupt (hard, `deadline`)
 *   caller, shutdown ────────▶ interrupt
 *   interrupt ───────────────▶ body (signal), and after a grace the body is left behind
 *   body's end ──────────────▶ one `turns.end` that settles and releases
 *   body asks for approval ──▶ one `turns.suspend` that keeps its inputs and releases
 *   store failed ────────────▶ spool: the step and what follows; no side effect any more, and the turn ends
 */
import { createCompressionFence } from "@turnkeeper/compression-fence";
import type { CompressionFence } from "@turnkeeper/compression-fence";
import { createTurnInterrupt } from "@turnkeeper/interrupt";
import type { TurnInterrupt } from "@turnkeeper/interrupt";
import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { Cancel, Host } from "@turnkeeper/kernel";
import type { SharedScheduler } from "@turnkeeper/periodic-scheduler";
import type {
  ChildWait,
  EntryDraft,
  Grant,
  HandOver,
  InterruptReason,
  JsonValue,
  Predecessor,
  StateStore,
  StopRequest,
  SuspendedTurn,
  TurnOutcome,
  TurnRecord,
  Usage,
} from "@turnkeeper/state-store";
import type { ProcessPresence, TurnLease } from "@turnkeeper/turn-lease";
import { reportDefect } from "./defect.ts";
import { durationText } from "./duration-text.ts";
import type { EndProcesses, ProcessMarker } from "./process-marker.ts";
import { endTurn } from "./turn-end.ts";
import { suspendTurn } from "./turn-suspension.ts";
import { TurnProcesses } from "./turn-processes.ts";
import { statusOfTurn } from "./turn-status.ts";
import { TurnWriter } from "./turn-writer.ts";
import type { SettledInputs } from "./turn-writer.ts";
import { watchTurn } from "@turnkeeper/turn-liveness";
import type { ProgressClock } from "@turnkeeper/turn-liveness";

/** What every turn needs from outside. */
export interface TurnDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly scheduler: SharedScheduler;
  readonly presence: ProcessPresence;
  /** Ends the processes that a turn left on this host. */
  readonly endProcesses?: EndProcesses | undefined;
}

/** What the body of a turn works with. */
export interface TurnScope {
  readonly sessionId: string;
  readonly turnId: string;
  readonly grant: Grant;
  readonly clock: ProgressClock;
  readonly interrupt: TurnInterrupt;
  readonly fence: CompressionFence;
  /**
   * One durable step of the turn, with the inputs that it settles. Where the store fails it is kept in the spool and `storeFailure` is set. Throws
   * `LEASE_LOST` once another has the session.
   */
  append(entries: readonly EntryDraft[], settledInputs?: SettledInputs): Promise<void>;
  /** What the store failed with: nothing is stored any more, and the turn must end. */
  readonly storeFailure: CodedError | undefined;
  /** The variables that every process of this turn must carry; once taken, the turn's end looks for them. */
  markProcesses(): ProcessMarker;
  /**
   * The last veto before a side effect: throws `INTERRUPTED` once the turn was stopped, `LEASE_LOST` when the lease no
   * longer holds, and the store's failure once there is one; renews first where the last renewal is old.
   */
  beforeSideEffect(): Promise<void>;
}

/** How the body wants the turn to end. */
export interface TurnEnding {
  readonly outcome: TurnOutcome;
  readonly reason?: string;
  readonly detail?: string;
  /** What stopped it. */
  readonly stop?: StopRequest;
  readonly usage?: Usage;
  readonly entries?: readonly EntryDraft[];
  /** The answer, for the call's last event; what is stored of it stands in `entries`. */
  readonly text?: string;
}

/** A call that somebody is to allow or deny; with `awaits` its caller is to run it, and send its result. */
export interface CallQuestion {
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  readonly awaits?: "result";
}

/** The body can go on only with answers: the turn is to be suspended until there are. */
export interface TurnPause {
  readonly outcome: "suspended";
  readonly asks: readonly CallQuestion[];
  /** The calls that wait for subagents that wait for answers. */
  readonly waits: readonly ChildWait[];
  /** What closes the open calls where a stop comes first. */
  readonly ifStopped: readonly EntryDraft[];
  readonly usage?: Usage;
  /** How long results of the caller's are waited for, in milliseconds. Default: ten minutes. */
  readonly resultWaitMs?: number;
}

export interface TurnObserver {
  /** `idleMs` is a whole number. */
  onStalled(idleMs: number, lastProgress: string): void;
  onResumed(): void;
}

export type ConductedTurn =
  | ConductedEnd
  /** Nobody holds it any more, and it goes on once its calls are answered. */
  | { readonly ending?: never; readonly suspended: SuspendedTurn; readonly asks: readonly CallQuestion[] }
  /** It was suspended and has gone on or ended elsewhere since, before that could be known here. */
  | { readonly ending?: never; readonly suspended?: never; readonly goneOn: TurnRecord };

export interface ConductedEnd {
  readonly suspended?: never;
  readonly ending: TurnEnding;
  /** Absent when the lease was lost or the store failed: then there is nothing of ours to hand over. */
  readonly handOver?: HandOver;
  /** The transcript's revision after the end, where the end was written. */
  readonly revision?: number;
}

export interface ConductSettings {
  readonly liveness: { readonly timeoutMs: number; readonly pollMs: number } | undefined;
  /** How long the turn may take, in milliseconds from its start. Absent: as long as it moves. */
  readonly deadlineMs?: number | undefined;
}

/** How often a running turn looks for a stop request; a wake-up through the socket comes first. */
const stopPollMs = 250;
/** How long a body may take to end once it was stopped softly, before the stop becomes a hard one. */
const softGraceMs = 60_000;
/** How long a body may take to end once it was stopped hard, before the turn ends without it. */
const bodyGraceMs = 10_000;

/** The interrupt as an ending, in words for people. */
export function interruptedEnding(interrupt: TurnInterrupt): TurnEnding {
  const current = interrupt.current;
  const reason: InterruptReason = (current?.reason as InterruptReason | undefined) ?? "shutdown";
  const { hard = true, by, atMs = 0, message } = current ?? {};
  return {
    outcome: "interrupted",
    reason,
    ...(message === undefined ? {} : { detail: message }),
    ...(by === undefined ? {} : { stop: { hard, reason, by, atMs } }),
  };
}

/** An error as an ending: a stop is an interruption, everything else a failure with its code. */
export function endingOf(error: unknown, interrupt: TurnInterrupt): TurnEnding {
  if (CodedError.is(error, "LEASE_LOST"))
    return { outcome: "interrupted", reason: "lease-lost", detail: error.message };
  if (interrupt.current !== undefined && (CodedError.is(error, "INTERRUPTED") || interrupt.signal.aborted))
    return interruptedEnding(interrupt);
  if (CodedError.is(error)) return { outcome: "failed", reason: error.code, detail: error.message };
  return { outcome: "failed", reason: "INTERNAL", detail: messageOf(error) };
}

/**
 * Closes the turn to interrupts and takes its ending, in one synchronous step: a stop that was published counts, even
 * against an answer that was just complete; one that comes later finds the turn finished.
 */
function settledEnding(interrupt: TurnInterrupt, wanted: TurnEnding | TurnPause): TurnEnding | TurnPause {
  const wasStopped = interrupt.current !== undefined;
  interrupt.finish();
  if (wanted.outcome === "suspended") {
    if (!wasStopped) return wanted;
    const { usage, ifStopped } = wanted;
    return { ...(usage ? { usage } : {}), ...interruptedEnding(interrupt), entries: ifStopped };
  }
  return wasStopped && wanted.outcome === "answered" ? { ...wanted, ...interruptedEnding(interrupt) } : wanted;
}

/** A soft stop that the body did not heed becomes a hard one, of the same reason and by the same. */
function harden(interrupt: TurnInterrupt): void {
  const { reason = "user-stop", by } = interrupt.current ?? {};
  const asked = by === undefined ? "The turn was asked to stop" : `The turn was asked to stop by ${by}`;
  const message = `${asked}, did not end within ${softGraceMs / 1000} s, and was stopped hard.`;
  void interrupt.interrupt({ hard: true, reason, message, ...(by === undefined ? {} : { by }) });
}

/** Settles with the body, or a while after a stop without it; its late end is then nobody's business. */
async function bodyOrDetach(
  host: Host,
  interrupt: TurnInterrupt,
  body: Promise<TurnEnding | TurnPause>,
): Promise<TurnEnding | TurnPause> {
  const { signal, hardSignal } = interrupt;
  let cancelTimer = (): void => {};
  let detach = (): void => {};
  const detached = new Promise<TurnEnding>((resolve) => {
    detach = () => resolve(interruptedEnding(interrupt));
  });
  const arm = (): void => {
    cancelTimer();
    cancelTimer = hardSignal.aborted
      ? host.timers.after(bodyGraceMs, detach)
      : host.timers.after(softGraceMs, () => harden(interrupt));
  };
  if (signal.aborted) arm();
  signal.addEventListener("abort", arm, { once: true });
  hardSignal.addEventListener("abort", arm, { once: true });
  try {
    return await Promise.race([body, detached]);
  } catch (error) {
    return endingOf(error, interrupt);
  } finally {
    cancelTimer();
    signal.removeEventListener("abort", arm);
    hardSignal.removeEventListener("abort", arm);
  }
}

function endAtDeadline(host: Host, interrupt: TurnInterrupt, deadlineMs: number | undefined): Cancel {
  if (deadlineMs === undefined) return () => {};
  const message = `The turn did not end within ${durationText(deadlineMs)}, which was all the time it had.`;
  return host.timers.after(deadlineMs, () => {
    void interrupt.interrupt({ hard: true, reason: "deadline", by: "deadline", message });
  });
}

/** Runs `body` as the turn that `lease` was granted for, and ends it. Never rejects: every failure is an ending. */
export async function conductTurn(
  deps: TurnDeps,
  turn: {
    readonly lease: TurnLease;
    readonly turnId: string;
    readonly clock: ProgressClock;
    /** What they left running on this host ends before this turn's first side effect. */
    readonly predecessors?: readonly Predecessor[] | undefined;
    /** It was suspended over calls that still are open: the body closes them, also where a stop came first. */
    readonly isResumed?: boolean;
    onInterrupt?(interrupt: TurnInterrupt): void;
  },
  settings: ConductSettings,
  observer: TurnObserver,
  body: (scope: TurnScope) => Promise<TurnEnding | TurnPause>,
): Promise<ConductedTurn> {
  const { store, host, scheduler, presence } = deps;
  const { lease, turnId, clock } = turn;
  const { sessionId } = lease;
  const fence = createCompressionFence({ host });
  const interrupt = createTurnInterrupt({ host, commitBarrier: fence });
  turn.onInterrupt?.(interrupt);

  const onLost = (): void => {
    const message = "The lease of this session was lost: the turn was stopped to protect the transcript.";
    void interrupt.interrupt({ hard: true, reason: "lease-lost", by: "lease", message });
  };
  if (lease.lost.aborted) onLost();
  lease.lost.addEventListener("abort", onLost, { once: true });

  const cancelDeadline = endAtDeadline(host, interrupt, settings.deadlineMs);

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
  const status = presence.reportStatus(lease.grant.holderId, () =>
    statusOfTurn(turnId, clock, settings.liveness?.timeoutMs),
  );

  const watch = watchTurn({ clock, scheduler, host }, settings.liveness ?? "off", {
    name: sessionId,
    confirmLease: async () => {
      // A lost lease stops the turn by its own way; here it only means that nobody is judged.
      await lease.confirm().catch(() => {});
      return !lease.lost.aborted;
    },
    commitAbort: async (claim, snapshot) => {
      const message = `No progress for ${durationText(snapshot.idleMs)} (last: ${snapshot.lastProgress}). The turn was stopped; the session is free, send again.`;
      return (
        (await interrupt.interrupt({ hard: true, reason: "stalled", by: "watchdog", message, claim })) === "published"
      );
    },
    onStall: ({ idleMs, lastProgress }) => observer.onStalled(Math.round(idleMs), lastProgress),
    onResume: () => observer.onResumed(),
    onAborted: () => {},
    withdraw: () => lease.stopRenewal(),
  });

  const writer = new TurnWriter(deps, lease, turnId);
  const processes = new TurnProcesses(deps.endProcesses, turnId, turn.predecessors);
  const scope: TurnScope = {
    sessionId,
    turnId,
    grant: lease.grant,
    clock,
    interrupt,
    fence,
    append: (entries, settledInputs) => writer.append(entries, settledInputs),
    get storeFailure() {
      return writer.failure;
    },
    markProcesses: () => processes.mark(),
    beforeSideEffect: async () => {
      interrupt.signal.throwIfAborted();
      await lease.confirm();
      // The renewal may have taken time enough for a stop to arrive.
      interrupt.signal.throwIfAborted();
      if (writer.failure) throw writer.failure;
    },
  };

  const run = async (): Promise<TurnEnding | TurnPause> => {
    await processes.endEarlier();
    // A stop that was asked while the grant was on its way: nothing begins.
    if (!turn.isResumed) interrupt.signal.throwIfAborted();
    return body(scope);
  };
  const wanted = settledEnding(interrupt, await bodyOrDetach(host, interrupt, run()));
  cancelDeadline();

  await processes.endOwn();
  await watch.stop();
  await stopTask.cancel();
  wake[Symbol.dispose]();
  status[Symbol.dispose]();
  lease.lost.removeEventListener("abort", onLost);
  fence.revoke();
  const ending = { turnId, writer, leavesProcesses: processes.areLeft };
  return wanted.outcome === "suspended"
    ? suspendTurn(deps, lease, ending, wanted)
    : endTurn(deps, lease, ending, wanted);
}
