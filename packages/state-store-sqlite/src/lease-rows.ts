import { standingOf, withPredecessor } from "@turnkeeper/state-store";
import type { Grant, Holder, LeaseView, Predecessor } from "@turnkeeper/state-store";
import { parseJson } from "./json-column.ts";
import type { Transaction } from "./transaction.ts";

interface KeptColumns {
  readonly fencing_token: number;
  readonly predecessors: string | null;
}

interface FreeLeaseRow extends KeptColumns {
  readonly holder_id: null;
}

interface HeldLeaseRow extends KeptColumns {
  readonly holder_id: string;
  readonly holder: string;
  readonly ttl_ms: number;
  readonly renew_count: number;
  readonly expires_boot_id: string;
  readonly expires_boot_ms: number;
  readonly acquired_at_ms: number;
  readonly expires_at_ms: number;
}

/** The lease of a session; the row stays, with its token and predecessors, when the lease is free (LEASE-2). */
export type LeaseRow = FreeLeaseRow | HeldLeaseRow;

export function isHeld(row: LeaseRow | undefined): row is HeldLeaseRow {
  return row !== undefined && row.holder_id !== null;
}

export function findLease(tx: Transaction, sessionId: string): LeaseRow | undefined {
  return tx.rows.get<LeaseRow>("SELECT * FROM lease WHERE session_id = ?", sessionId);
}

export function leaseHolder(row: HeldLeaseRow): Holder {
  return parseJson<Holder>(row.holder, "lease.holder");
}

/** How others see the lease; absent when it is free. */
export function leaseView(tx: Transaction, sessionId: string, row: LeaseRow | undefined): LeaseView | undefined {
  if (!isHeld(row)) return undefined;
  return {
    sessionId,
    holder: leaseHolder(row),
    fencingToken: row.fencing_token,
    ttlMs: row.ttl_ms,
    renewCount: row.renew_count,
    ...standingOf({ bootId: row.expires_boot_id, bootMs: row.expires_boot_ms }, tx.now),
    acquiredAtMs: row.acquired_at_ms,
    expiresAtMs: row.expires_at_ms,
  };
}

export function findLeaseView(tx: Transaction, sessionId: string): LeaseView | undefined {
  return leaseView(tx, sessionId, findLease(tx, sessionId));
}

export function isGrantOf(row: LeaseRow | undefined, grant: Grant): row is HeldLeaseRow {
  return isHeld(row) && row.holder_id === grant.holderId && row.fencing_token === grant.fencingToken;
}

/** The guard of every write: the grant stands as long as nobody else was granted, expired or not. */
export function grantStands(tx: Transaction, grant: Grant): boolean {
  const row = tx.rows.get<{ stands: 1 }>(
    "SELECT 1 AS stands FROM lease WHERE session_id = ? AND holder_id = ? AND fencing_token = ?",
    grant.sessionId,
    grant.holderId,
    grant.fencingToken,
  );
  return row !== undefined;
}

/**
 * A new grant, with the next fencing token; `row` is the lease as this transaction found it. (No upsert that returns
 * the token: `RETURNING` makes SQLite open a table of its own, which costs more than the rest together.)
 */
export function grantLease(
  tx: Transaction,
  sessionId: string,
  row: LeaseRow | undefined,
  holder: Holder,
  ttlMs: number,
): number {
  const fencingToken = (row?.fencing_token ?? 0) + 1;
  tx.rows.run(
    row
      ? `UPDATE lease SET fencing_token = ?, holder_id = ?, holder = ?, ttl_ms = ?, renew_count = 0, expires_boot_id = ?,
           expires_boot_ms = ?, acquired_at_ms = ?, expires_at_ms = ? WHERE session_id = ?`
      : `INSERT INTO lease (fencing_token, holder_id, holder, ttl_ms, renew_count, expires_boot_id, expires_boot_ms,
           acquired_at_ms, expires_at_ms, session_id) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?)`,
    fencingToken,
    holder.holderId,
    JSON.stringify(holder),
    ttlMs,
    tx.now.bootId,
    tx.now.bootMs + ttlMs,
    tx.atMs,
    tx.atMs + ttlMs,
    sessionId,
  );
  return fencingToken;
}

/** Answers whether the grant still stood. */
export function renewLease(tx: Transaction, grant: Grant, ttlMs: number): boolean {
  const changes = tx.rows.run(
    `UPDATE lease SET ttl_ms = ?, renew_count = renew_count + 1, expires_boot_id = ?, expires_boot_ms = ?, expires_at_ms = ?
     WHERE session_id = ? AND holder_id = ? AND fencing_token = ?`,
    ttlMs,
    tx.now.bootId,
    tx.now.bootMs + ttlMs,
    tx.atMs + ttlMs,
    grant.sessionId,
    grant.holderId,
    grant.fencingToken,
  );
  return changes === 1;
}

/** Frees the grant, and raises the token by `raise` so that its late writes find another. Answers whether it stood. */
export function freeLease(tx: Transaction, grant: Grant, raise: 0 | 1 = 0): boolean {
  const changes = tx.rows.run(
    `UPDATE lease SET fencing_token = fencing_token + ?, holder_id = NULL, holder = NULL, ttl_ms = NULL, renew_count = NULL,
       expires_boot_id = NULL, expires_boot_ms = NULL, acquired_at_ms = NULL, expires_at_ms = NULL
     WHERE session_id = ? AND holder_id = ? AND fencing_token = ?`,
    raise,
    grant.sessionId,
    grant.holderId,
    grant.fencingToken,
  );
  return changes === 1;
}

/** The turns whose processes the next grant must end. */
export function predecessorsOf(row: LeaseRow | undefined): readonly Predecessor[] | undefined {
  return row?.predecessors ? parseJson<readonly Predecessor[]>(row.predecessors, "lease.predecessors") : undefined;
}

/** The turn was ended by somebody else: grants are told until one has ended itself. */
export function rememberPredecessor(tx: Transaction, sessionId: string, turn: Predecessor): void {
  const known = predecessorsOf(findLease(tx, sessionId));
  const predecessors = JSON.stringify(withPredecessor(known, turn));
  tx.rows.run("UPDATE lease SET predecessors = ? WHERE session_id = ?", predecessors, sessionId);
}

/** A turn has ended itself, and before its first side effect the processes of those before it. */
export function forgetPredecessors(tx: Transaction, sessionId: string): void {
  tx.rows.run("UPDATE lease SET predecessors = NULL WHERE session_id = ? AND predecessors IS NOT NULL", sessionId);
}
