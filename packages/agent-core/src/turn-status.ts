import type { Holder } from "@turnkeeper/state-store";
import type { HolderStatus, ProcessPresence } from "@turnkeeper/turn-lease";
import type { ProgressClock } from "@turnkeeper/turn-liveness";

/** A declared wait that has not ended. */
export interface StatusWait {
  /** `model`, `tool`, `approval` or `child`. */
  readonly kind: string;
  readonly name: string;
  /** Milliseconds until it excuses the silence no more; 0 or less when its bound has passed. */
  readonly endsInMs: number;
}

/** What a running turn is doing, as its own process says. For people: nothing may be decided by it. */
export interface TurnStatus {
  readonly turnId: string;
  /** The kind and detail of the last progress. */
  readonly lastProgress: string;
  /** Milliseconds since then. */
  readonly idleMs: number;
  readonly waits: readonly StatusWait[];
  /** How long it may be silent without a declared wait, in milliseconds; absent when the watchdog is off. */
  readonly timeoutMs?: number;
}

/** What this process answers who asks for its turn. */
export function statusOfTurn(turnId: string, clock: ProgressClock, timeoutMs: number | undefined): HolderStatus {
  const { lastProgress, idleMs, openWaits } = clock.snapshot();
  const waits = openWaits.map(({ kind, name, endsInMs }): StatusWait => ({ kind, name, endsInMs }));
  const status: TurnStatus = { turnId, lastProgress, idleMs, waits, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  return { ...status };
}

function isWait(value: unknown): value is StatusWait {
  if (typeof value !== "object" || value === null) return false;
  const { kind, name, endsInMs } = value as Partial<Record<keyof StatusWait, unknown>>;
  return typeof kind === "string" && typeof name === "string" && Number.isFinite(endsInMs);
}

/**
 * Asks the process of `holder` what its turn is doing. Absent when it cannot be asked: it is dead, stopped, busy, on
 * another machine, or between two turns. Never rejects; at most some 200 ms.
 */
export async function readTurnStatus(
  deps: { readonly presence: ProcessPresence },
  holder: Holder,
): Promise<TurnStatus | undefined> {
  const told = await deps.presence.statusOf(holder, holder.holderId);
  // Another process, perhaps another release, wrote this.
  const { turnId, lastProgress, idleMs, waits, timeoutMs } = told ?? {};
  if (typeof turnId !== "string" || typeof lastProgress !== "string" || typeof idleMs !== "number") return undefined;
  return {
    turnId,
    lastProgress,
    idleMs,
    waits: Array.isArray(waits) ? waits.filter(isWait) : [],
    ...(typeof timeoutMs === "number" ? { timeoutMs } : {}),
  };
}
