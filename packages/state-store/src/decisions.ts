/**
 * The decisions of the contract, as pure functions over what a transaction has read. Every adapter decides through
 * them, so that stores cannot differ in judgement, only in how they keep rows.
 */
import type { Clock } from "@turnkeeper/kernel";
import { wantsTurn } from "./child.ts";
import type { PendingInput } from "./inbox.ts";
import type { LeaseView } from "./lease.ts";
import type { Predecessor } from "./turn.ts";

/** How long a waiter that was woken may take to claim before others pass it. */
export const claimPeriodMs = 500;

/**
 * How many turns in a row that did not end themselves are remembered. A second one must have died before it had ended
 * the processes of the first, so a few are more than a life has.
 */
const predecessorsMax = 16;

/** An instant of the store's clock: comparable only within one boot. */
export interface BootInstant {
  readonly bootId: string;
  readonly bootMs: number;
}

export function nowOf(clock: Clock): BootInstant {
  return { bootId: clock.bootId, bootMs: clock.bootMs() };
}

/** Judges a lease by the store's clock. Wall time has no say: it steps. */
export function standingOf(expires: BootInstant, now: BootInstant): Pick<LeaseView, "standing" | "expiresInMs"> {
  const expiresInMs = expires.bootMs - now.bootMs;
  if (expires.bootId !== now.bootId) return { standing: "other-boot", expiresInMs };
  return { standing: expiresInMs > 0 ? "live" : "expired", expiresInMs };
}

/** A pending input with the moment its runner was woken, where it was. */
export interface QueuedInput {
  readonly input: PendingInput;
  readonly wokenAt?: BootInstant;
}

function isAwake(queued: QueuedInput, now: BootInstant): boolean {
  const { wokenAt } = queued;
  return wokenAt === undefined || wokenAt.bootId !== now.bootId || now.bootMs - wokenAt.bootMs <= claimPeriodMs;
}

/**
 * The waiter whose turn it is: the oldest input with a runner of its own that has not slept through its claim period.
 * `queue` is every pending input of the session, oldest first.
 */
export function firstWaiter(queue: readonly QueuedInput[], now: BootInstant): QueuedInput | undefined {
  return queue.find((queued) => queued.input.runner !== undefined && isAwake(queued, now));
}

export type Claim =
  | { readonly kind: "take"; readonly input: PendingInput }
  | { readonly kind: "behind"; readonly waiter: QueuedInput }
  | { readonly kind: "nothing-to-run" };

/**
 * What `runnerId` gets from a free session: the oldest input among its own and the orphans, unless a live waiter
 * queued before its own first input. So nobody is overtaken by one who came later, orphans never starve, and a waiter
 * that died or sleeps holds up nobody.
 */
export function claim(queue: readonly QueuedInput[], now: BootInstant, runnerId: string): Claim {
  const own = queue.find(({ input }) => input.runner?.runnerId === runnerId);
  const others = queue.filter(({ input }) => input.runner !== undefined && input.runner.runnerId !== runnerId);
  const waiter = firstWaiter(others, now);
  if (waiter && (own === undefined || waiter.input.seq < own.input.seq)) return { kind: "behind", waiter };
  const wanting = queue.filter(({ input }) => wantsTurn(input));
  const oldest = wanting.find(({ input }) => input.runner === undefined || input.runner.runnerId === runnerId);
  return oldest ? { kind: "take", input: oldest.input } : { kind: "nothing-to-run" };
}

/** What a session remembers once `turn`, too, was ended by somebody else. */
export function withPredecessor(
  known: readonly Predecessor[] | undefined,
  { turnId, holder }: Predecessor,
): readonly Predecessor[] {
  return [...(known ?? []), { turnId, holder }].slice(-predecessorsMax);
}
