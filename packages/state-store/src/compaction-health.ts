import type { BootInstant } from "./decisions.ts";

/**
 * How the summaries of a session have fared: what keeps a failing one from being asked for again and again, over turns,
 * restarts and processes. Absent: nothing has failed since the last that was applied.
 */
export interface CompactionHealth {
  /** Attempts in a row that were silent for too long or took too long. */
  readonly stallCount: number;
  /** Attempts in a row whose summary was cut at the model's output limit. */
  readonly outputCapCount: number;
  /** Summaries in a row that were applied and hardly shortened the context. */
  readonly thinCount: number;
  /** What the latest attempt failed with, for people. */
  readonly error?: string;
  /** Before this instant of the store's clock no summary is asked for; it may have passed. */
  readonly coolDownEnds?: BootInstant;
}

/** Milliseconds until a summary may be asked for again; 0 when it may. An instant of another boot has passed. */
export function coolDownMsOf(health: CompactionHealth | undefined, now: BootInstant): number {
  const ends = health?.coolDownEnds;
  return ends?.bootId === now.bootId ? Math.max(0, ends.bootMs - now.bootMs) : 0;
}

/** `health` with a cool-down of at least `coolDownMs` from now: one of `stored` that ends later stays (merge by max). */
export function withCoolDown(
  health: CompactionHealth,
  coolDownMs: number,
  stored: CompactionHealth | undefined,
  now: BootInstant,
): CompactionHealth {
  const restMs = Math.max(coolDownMs, coolDownMsOf(stored, now));
  return { ...health, coolDownEnds: { bootId: now.bootId, bootMs: now.bootMs + restMs } };
}
