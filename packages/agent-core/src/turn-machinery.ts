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
import type { CodedError, Host } from "@turnkeeper/kernel";
import type { SharedScheduler } from "@turnkeeper/periodic-scheduler";
import type {
  EntryDraft,
  Grant,
  HandOver,
  Predecessor,
  StateStore,
  SuspendedTurn,
  TurnRecord,
} from "@turnkeeper/state-store";
import type { ProcessPresence, TurnLease } from "@turnkeeper/turn-lease";
import { bodyOrDetach } from "./body-end.ts";
import { durationText } from "./duration-text.ts";
import type { EndProcesses, ProcessMarker } from "./process-marker.ts";
import { endTurn } from "./turn-end.ts";
import { settledEnding } from "./turn-ending.ts";
import type { CallQuestion, TurnEnding, TurnPause } from "./turn-ending.ts";
import { TurnProcesses } from "./turn-processes.ts";
import { statusOfTurn } from "./turn-status.ts";
import { listenForStops } from "./turn-stops.ts";
import { suspendTurn } from "./turn-suspension.ts";
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
  const { host, scheduler, presence } = deps;
  const { lease, turnId, clock } = turn;
  const { sessionId } = lease;
  const fence = createCompressionFence({ host });
  const interrupt = createTurnInterrupt({ host, commitBarrier: fence });
  turn.onInterrupt?.(interrupt);

  const stopListening = listenForStops(deps, { lease, turnId, deadlineMs: settings.deadlineMs }, interrupt);
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
  await processes.endOwn();
  await watch.stop();
  await stopListening();
  status[Symbol.dispose]();
  fence.revoke();
  const ending = { turnId, writer, leavesProcesses: processes.areLeft };
  return wanted.outcome === "suspended"
    ? suspendTurn(deps, lease, ending, wanted)
    : endTurn(deps, lease, ending, wanted);
}
