import { coolDownMsOf, withCoolDown } from "@turnkeeper/state-store";
import type { CompactionHealth, CompactionHealthRequest, CompactionHealthResult } from "@turnkeeper/state-store";
import { parseJson, toJson } from "./json-column.ts";
import { grantStands } from "./lease-rows.ts";
import { findSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import type { Transaction } from "./transaction.ts";

function healthOf({ compaction_health }: SessionRow): CompactionHealth | undefined {
  return compaction_health === null
    ? undefined
    : parseJson<CompactionHealth>(compaction_health, "session.compaction_health");
}

export function readCompactionHealth(
  tx: Transaction,
  sessionId: string,
): { readonly health?: CompactionHealth; readonly coolDownMs: number } {
  const session = findSession(tx, sessionId);
  const health = session && healthOf(session);
  return { ...(health ? { health } : {}), coolDownMs: coolDownMsOf(health, tx.now) };
}

export function storeCompactionHealth(
  tx: Transaction,
  session: SessionRow,
  health: CompactionHealth | undefined,
): void {
  const text = toJson(health);
  if (text === session.compaction_health) return;
  tx.rows.run("UPDATE session SET compaction_health = ? WHERE session_no = ?", text, session.session_no);
}

export function setCompactionHealth(tx: Transaction, request: CompactionHealthRequest): CompactionHealthResult {
  const { grant, health, coolDownMs } = request;
  if (!grantStands(tx, grant)) return { kind: "stale-token" };
  const session = findSession(tx, grant.sessionId);
  if (!session) return { kind: "set" };
  const isArmed = health !== undefined && coolDownMs !== undefined;
  const stored = isArmed ? withCoolDown(health, coolDownMs, healthOf(session), tx.now) : health;
  storeCompactionHealth(tx, session, stored);
  return { kind: "set", ...(stored ? { health: stored } : {}) };
}
