import { standingOf, withPredecessor } from "@turnkeeper/state-store";
import type { BootInstant, Grant, Holder, LeaseView, Predecessor } from "@turnkeeper/state-store";
import { parseJson } from "./json-column.ts";
import type { SessionImage } from "./session-image.ts";

interface KeptColumns {
  readonly fencing_token: number;
  readonly predecessors: string | null;
}

interface FreeLeaseRow extends KeptColumns {
  readonly holder_id: null;
}

export interface HeldLeaseRow extends KeptColumns {
  readonly holder_id: string;
  readonly holder: string;
  readonly ttl_ms: number;
  readonly renew_count: number;
  readonly expires_clock_ms: number;
  readonly acquired_at_ms: number;
  readonly expires_at_ms: number;
}

/** The lease of a session; the row stays, with its token and predecessors, when the lease is free (LEASE-2). */
export type LeaseRow = FreeLeaseRow | HeldLeaseRow;

/** What a call makes of the row. Its expiry is the server's to say: so many milliseconds from its own now. */
export type NewLeaseRow =
  | FreeLeaseRow
  | (Omit<HeldLeaseRow, "expires_clock_ms" | "expires_at_ms"> & { readonly ttl_from_now: true })
  | HeldLeaseRow;

export function isHeld<Row extends LeaseRow | NewLeaseRow>(
  row: Row | undefined,
): row is Exclude<Row, { holder_id: null }> {
  return row !== undefined && row.holder_id !== null;
}

/** There is one clock, the server's, which has no boots. */
export const serverBootId = "server";

export function leaseHolder(row: Pick<HeldLeaseRow, "holder">): Holder {
  return parseJson<Holder>(row.holder, "lease.holder");
}

/** How others see the lease; absent when it is free. */
export function leaseView(sessionId: string, row: LeaseRow | undefined, now: BootInstant): LeaseView | undefined {
  if (!isHeld(row)) return undefined;
  return {
    sessionId,
    holder: leaseHolder(row),
    fencingToken: row.fencing_token,
    ttlMs: row.ttl_ms,
    renewCount: row.renew_count,
    ...standingOf({ bootId: serverBootId, bootMs: row.expires_clock_ms }, now),
    acquiredAtMs: row.acquired_at_ms,
    expiresAtMs: row.expires_at_ms,
  };
}

export function isGrantOf<Row extends LeaseRow | NewLeaseRow>(
  row: Row | undefined,
  grant: Grant,
): row is Exclude<Row, { holder_id: null }> {
  return isHeld(row) && row.holder_id === grant.holderId && row.fencing_token === grant.fencingToken;
}

/** A new grant, with the next fencing token. */
export function grantLease(image: SessionImage, holder: Holder, ttlMs: number): number {
  const fencingToken = (image.lease?.fencing_token ?? 0) + 1;
  image.putLease({
    fencing_token: fencingToken,
    predecessors: image.lease?.predecessors ?? null,
    holder_id: holder.holderId,
    holder: JSON.stringify(holder),
    ttl_ms: ttlMs,
    renew_count: 0,
    acquired_at_ms: image.atMs,
    ttl_from_now: true,
  });
  return fencingToken;
}

/** The same grant again, with a term from now. */
export function extendLease(image: SessionImage, row: HeldLeaseRow, ttlMs: number): void {
  const { expires_clock_ms: _clock, expires_at_ms: _at, ...kept } = row;
  image.putLease({ ...kept, ttl_ms: ttlMs, renew_count: row.renew_count + 1, ttl_from_now: true });
}

/** Frees the lease, and raises the token by `raise` so that its late writes find another. */
export function freeLease(image: SessionImage, raise: 0 | 1 = 0): void {
  const { fencing_token = 0, predecessors = null } = image.lease ?? {};
  image.putLease({ fencing_token: fencing_token + raise, predecessors, holder_id: null });
}

/** The turns whose processes the next grant must end. */
export function predecessorsOf(row: Pick<KeptColumns, "predecessors"> | undefined): readonly Predecessor[] | undefined {
  return row?.predecessors ? parseJson<readonly Predecessor[]>(row.predecessors, "lease.predecessors") : undefined;
}

/** The turn was ended by somebody else: grants are told until one has ended itself. */
export function rememberPredecessor(image: SessionImage, turn: Predecessor): void {
  const { lease } = image;
  if (lease) image.putLease({ ...lease, predecessors: JSON.stringify(withPredecessor(predecessorsOf(lease), turn)) });
}

/** A turn has ended itself, and before its first side effect the processes of those before it. */
export function forgetPredecessors(image: SessionImage): void {
  const { lease } = image;
  if (lease && lease.predecessors !== null) image.putLease({ ...lease, predecessors: null });
}
