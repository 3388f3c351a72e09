import { callsOf } from "./entry.ts";
import type { SessionRecords } from "./session.ts";
import { digestOf } from "./json.ts";

/** One broken rule of one session; `rule` is an invariant id of ARCHITECTURE.md. */
export interface Violation {
  readonly rule: string;
  readonly session: string;
  readonly detail: string;
}

/**
 * Proves the settlement contract on what a store has of a session: every call of an ended turn has one result and no
 * result lacks a call (PAIR-1), every taken input belongs to a turn that runs (INBOX-1), fencing tokens only grow from
 * entry to entry (LEASE-2), at most one turn runs and it has the lease (LEASE-1), and every entry still has the digest
 * it was stored with (APPEND-3). Pure; an empty answer means clean.
 */
export function verifyRecords(records: SessionRecords): readonly Violation[] {
  const session = records.session.sessionId;
  const violations: Violation[] = [];
  const report = (rule: string, detail: string): void => void violations.push({ rule, session, detail });
  const turns = new Map(records.turns.map((turn) => [turn.turnId, turn]));

  // A call id is unique in its turn only, so both maps are keyed by turn and call.
  const calls = new Map<string, string>();
  const results = new Map<string, number>();
  let lastSeq = 0;
  let lastToken = 0;
  for (const entry of records.entries) {
    if (entry.seq <= lastSeq) report("APPEND-2", `entry ${entry.key} has seq ${entry.seq}, not after ${lastSeq}`);
    lastSeq = entry.seq;
    if (digestOf(entry.body) !== entry.digest)
      report("APPEND-3", `entry ${entry.key} (seq ${entry.seq}) no longer has the content it was stored with`);
    if (!turns.has(entry.turnId))
      report("APPEND-2", `entry ${entry.key} belongs to turn ${entry.turnId}, which does not exist`);
    if (entry.late) continue;
    const token = turns.get(entry.turnId)?.fencingToken ?? lastToken;
    if (token < lastToken)
      report("LEASE-2", `entry ${entry.key} was written under fencing token ${token}, after one under ${lastToken}`);
    lastToken = Math.max(lastToken, token);
    for (const call of callsOf(entry.body)) {
      const key = JSON.stringify([entry.turnId, call.callId]);
      if (calls.has(key)) report("PAIR-1", `tool call ${call.callId} of turn ${entry.turnId} is stored twice`);
      calls.set(key, entry.turnId);
    }
    if (entry.body.role !== "tool") continue;
    const key = JSON.stringify([entry.turnId, entry.body.callId]);
    if (!calls.has(key))
      report("PAIR-1", `result for tool call ${entry.body.callId} of turn ${entry.turnId} has no call before it`);
    results.set(key, (results.get(key) ?? 0) + 1);
  }
  for (const [key, turnId] of calls) {
    const count = results.get(key) ?? 0;
    const isOpen = turns.get(turnId)?.state === "running";
    if (count > 1 || (count === 0 && !isOpen)) report("PAIR-1", `tool call ${key} has ${count} results`);
  }

  for (const input of records.inputs) {
    if (input.state === "pending") continue;
    if (input.turnId === undefined) {
      if (input.state === "settled" && input.end !== "cancelled" && input.end !== "expired") {
        report("INBOX-1", `input ${input.inputId} ended as ${input.end} without a turn`);
      }
      continue;
    }
    const turn = turns.get(input.turnId);
    if (!turn) report("INBOX-1", `input ${input.inputId} was taken by turn ${input.turnId}, which does not exist`);
    else if (input.state === "taken" && turn.state === "ended") {
      report("INBOX-1", `turn ${input.turnId} ended as ${turn.outcome} and left input ${input.inputId} unsettled`);
    }
  }

  for (const turn of records.turns) {
    if (turn.fencingToken > records.fencingToken)
      report(
        "LEASE-2",
        `turn ${turn.turnId} has fencing token ${turn.fencingToken}, above the greatest granted (${records.fencingToken})`,
      );
    if (turn.state === "running" && records.lease?.fencingToken !== turn.fencingToken)
      report("LEASE-1", `turn ${turn.turnId} runs under fencing token ${turn.fencingToken}, which holds no lease`);
  }
  const running = records.turns.filter((turn) => turn.state === "running");
  if (running.length > 1) report("LEASE-1", `turns ${running.map((turn) => turn.turnId).join(" and ")} run at once`);
  return violations;
}
