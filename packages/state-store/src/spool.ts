/**
 * What a turn had produced when the store refused to take it, kept beside the store and brought back by itself.
 *
 * Owns SPOOL-1: what a turn had produced when the store failed is in the spool, and is replayed once, in order.
 * The next grant of the session, its release and the settlement of a dead holder absorb the session's spool in their own
 * transaction, before anything else is settled, and let go of it only after that is committed; keys and digests make a
 * second replay harmless. Nothing in a spool can refuse a grant: what does not fit any more is kept as late.
 * Leaves to agent-core what is spooled, and when: never under a lease that another holder has, and never an input.
 *
 * | the step's turn is | its entries | its settlements, its end |
 * | --- | --- | --- |
 * | running, under the step's own grant | join the turn | settled as the step says |
 * | the same, but a key has other content, or a result no call | late | settled as the step says |
 * | ended, suspended, or under another grant | late, under keys that the turn never uses | none: what is settled, stands |
 * | not known to this store | wait in the spool | none |
 */
import type { EntryDraft } from "./entry.ts";
import type { Grant } from "./identity.ts";
import type { InputEnd } from "./inbox.ts";
import type { EndRequest, TurnRecord } from "./turn.ts";

/** One step of a turn that the store did not take. */
export interface SpoolStep {
  readonly grant: Grant;
  readonly turnId: string;
  readonly entries: readonly EntryDraft[];
  readonly settledInputs?: readonly { readonly inputId: string; readonly end: InputEnd }[];
  /** How the turn ended; present on its last step. */
  readonly end?: Pick<EndRequest, "outcome" | "reason" | "detail" | "stop" | "usage" | "leavesProcesses">;
}

/** A step as it was kept. */
export interface SpooledStep extends SpoolStep {
  /** Wall time, for people: an entry that comes back bears the time at which it was kept. */
  readonly keptAtMs: number;
}

/** What waits of one session. */
export interface SpoolView {
  readonly sessionId: string;
  readonly stepCount: number;
  /** Whose steps they are, in alphabetical order. A turn that the store does not know keeps them waiting. */
  readonly turnIds: readonly string[];
  /** What cannot be read any more: it is skipped, and stays where it is. */
  readonly damagedCount: number;
  /** Where it lies, for people. */
  readonly place: string;
}

/** What the store refused, in a place that does not depend on the store's health. */
export interface SpoolStore {
  /**
   * Keeps a step so that the death of the process and a power cut leave it there, and answers where. A store that is
   * sealed keeps steps too. Safe to repeat. Rejects with `STORE_FULL`, `STORE_READONLY`, `STORE_IO`, `STORE_UNAVAILABLE`,
   * `STORE_CONTRACT` or `STORE_CLOSED`; then the step is nowhere. Keeps SPOOL-1.
   */
  keep(step: SpoolStep): Promise<{ readonly place: string }>;
  /** What waits, of every session or of one, in the order of session ids. */
  waiting(sessionId?: string): Promise<readonly SpoolView[]>;
}

/** What becomes of a step whose turn the store has so (absent: not at all). */
export function fateOfStep(step: SpoolStep, turn: TurnRecord | undefined): "joins" | "late" | "waits" {
  if (!turn) return "waits";
  const isItsOwn = turn.fencingToken === step.grant.fencingToken && turn.holder.holderId === step.grant.holderId;
  return turn.state === "running" && isItsOwn ? "joins" : "late";
}

/**
 * The key that an entry of a step is stored under; nothing where it is there already. One that is late by its step's
 * fate takes no key of its turn's own, which may go on under another grant, and store something else there.
 */
export function keyOfSpooled(
  { key, digest }: { readonly key: string; readonly digest: string },
  mayJoin: boolean,
  storedDigest: (key: string) => string | undefined,
): string | undefined {
  const freeKey = (wanted: string): string | undefined => {
    let numbered = wanted;
    for (let number = 2, known = storedDigest(wanted); known !== undefined; number++) {
      if (known === digest) return undefined;
      numbered = `${wanted}/${number}`;
      known = storedDigest(numbered);
    }
    return numbered;
  };
  const own = freeKey(key);
  return own === undefined || mayJoin ? own : freeKey(`${key}/late`);
}
