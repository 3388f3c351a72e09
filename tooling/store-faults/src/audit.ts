import { systemHost } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { AcquireRequest, SessionRecords } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { stepOf } from "./acknowledgement.ts";
import type { Content, Expectation, SessionExpectation } from "./expectation.ts";
import { failureOf } from "./failure.ts";

/** What is wrong with a store. */
export interface Finding {
  /** `lost`: acknowledged and gone. `twice`: come back from the spool again. `half`: a step without all of its entries. `token`: one that may be granted twice. */
  readonly kind: "lost" | "twice" | "half" | "token" | "rule" | "corrupt" | "unopenable";
  readonly detail: string;
}

/** The key that an entry had in its turn: what a replay keeps as late stands under one of its own. */
const ownKeyOf = ({ key, late }: SessionRecords["entries"][number]): string =>
  late ? key.replace(/\/late$/, "") : key;

function lostOf(expected: Content, records: SessionRecords): string[] {
  const keys = new Set(records.entries.map(ownKeyOf));
  const inputs = new Map(records.inputs.map((input) => [input.inputId, input]));
  const running = new Set(records.turns.flatMap((turn) => (turn.state === "running" ? turn.turnId : [])));
  const known = new Set(records.turns.map((turn) => turn.turnId));
  return [
    ...[...expected.keys].filter((key) => !keys.has(key)).map((key) => `entry ${key}`),
    ...[...expected.inputIds].filter((id) => !inputs.has(id)).map((id) => `input ${id}`),
    ...[...expected.ends].flatMap(([id, end]) => {
      const input = inputs.get(id);
      return input?.state === "settled" && input.end === end ? [] : `settlement of input ${id} as ${end}`;
    }),
    ...[...expected.endedTurnIds]
      .filter((turnId) => running.has(turnId) || !known.has(turnId))
      .map((turnId) => `end of turn ${turnId}`),
  ];
}

/** Steps of which some entries are there and some are not, acknowledged or not. */
function halfSteps(records: SessionRecords): string[] {
  const counts = new Map<string, { found: number; count: number }>();
  for (const entry of records.entries) {
    const step = stepOf(ownKeyOf(entry));
    if (!step) continue;
    const known = counts.get(step.step) ?? { found: 0, count: step.count };
    known.found++;
    counts.set(step.step, known);
  }
  return [...counts].flatMap(([step, { found, count }]) =>
    found === count ? [] : `step ${step} has ${found} of ${count} entries`,
  );
}

/** Keys that were given a number behind their own: what a replay does with content that it does not know. */
function repeated(records: SessionRecords): string[] {
  return records.entries.flatMap(({ key }) => (/^.+\/\d+of\d+(\/late)?\/\d+$/.test(key) ? [`entry ${key}`] : []));
}

function ruleFindings(records: SessionRecords): Finding[] {
  return verifyRecords(records).map(({ rule, session, detail }) => ({
    kind: "rule",
    detail: `${rule} in ${session}: ${detail}`,
  }));
}

class Audit {
  readonly findings: Finding[] = [];
  readonly #store: SqliteStore;

  constructor(store: SqliteStore) {
    this.#store = store;
  }

  async session(sessionId: string, expected: SessionExpectation): Promise<void> {
    const records = await this.#store.sessions.records(sessionId);
    if (records) {
      this.#findAll("lost", sessionId, lostOf(expected, records));
      this.#findWrong(sessionId, records);
    } else if (expected.keys.size + expected.inputIds.size + expected.endedTurnIds.size > 0)
      this.findings.push({ kind: "lost", detail: `${sessionId}: all of it` });
    await this.#nextGrant(sessionId, expected);
  }

  #findAll(kind: Finding["kind"], sessionId: string, found: readonly string[]): void {
    this.findings.push(...found.map((what): Finding => ({ kind, detail: `${sessionId}: ${what}` })));
  }

  #findWrong(sessionId: string, records: SessionRecords): void {
    this.#findAll("half", sessionId, halfSteps(records));
    this.findings.push(...ruleFindings(records));
  }

  /** Takes the session from whoever died with it: the token is a new one, and what the turn left is settled. */
  async #nextGrant(sessionId: string, expected: SessionExpectation): Promise<void> {
    const { leases, sessions, inbox, spool } = this.#store;
    // Nobody lives that waits.
    for (const { runner } of await inbox.pending(sessionId))
      if (runner) await inbox.abandon(sessionId, runner.runnerId);
    const lease = await leases.read(sessionId);
    const request: AcquireRequest = {
      sessionId,
      holder: { holderId: systemHost.random.id(), instanceId: "audit", host: "test", bootId: "", pid: process.pid },
      ttlMs: 60_000,
    };
    const dead = lease && { sessionId, holderId: lease.holder.holderId, fencingToken: lease.fencingToken };
    const answer = await leases.acquire(dead ? { ...request, reclaim: dead } : request);
    const records = await sessions.records(sessionId);
    if (answer.kind !== "granted") {
      this.findings.push({
        kind: "rule",
        detail: `${sessionId}: nobody has it, and a grant is answered ${answer.kind}`,
      });
      return;
    }
    const next = answer.fencingToken;
    if (next <= expected.fencingToken)
      this.findings.push({
        kind: "token",
        detail: `${sessionId}: token ${next} is granted though ${expected.fencingToken} was acknowledged`,
      });
    if (records) {
      const lost = lostOf(expected.kept, records).map((what) => `of the spool: ${what}`);
      this.#findAll("lost", sessionId, lost);
      this.#findAll("twice", sessionId, repeated(records));
      this.#findWrong(sessionId, records);
    }
    const left = (await spool.waiting(sessionId)).filter(({ stepCount }) => stepCount > 0);
    this.#findAll(
      "lost",
      sessionId,
      left.map(({ stepCount }) => `${stepCount} steps that stay in the spool`),
    );
    const { holder } = request;
    await leases.release({ sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken });
  }
}

/** Whether SQLite finds the closed file sound. */
function integrityOf(path: string): Finding[] {
  const database = new Database(path);
  try {
    const answer = String(database.pragma("integrity_check", { simple: true }));
    return answer === "ok" ? [] : [{ kind: "corrupt", detail: answer }];
  } finally {
    database.close();
  }
}

/**
 * Opens the store that nobody else has open, as the next process would, and finds everything that contradicts what was
 * acknowledged, every broken rule, and every token that could be granted twice. Leaves it closed, with dead turns
 * settled.
 */
export async function auditStore(path: string, expectation: Expectation): Promise<readonly Finding[]> {
  let store: SqliteStore;
  try {
    store = await openSqliteStore(path, { host: systemHost });
  } catch (error) {
    return [{ kind: "unopenable", detail: failureOf(error).message }];
  }
  const audit = new Audit(store);
  try {
    for (const [sessionId, expected] of expectation.sessions) await audit.session(sessionId, expected);
    await store.close();
    return [...audit.findings, ...integrityOf(path)];
  } catch (error) {
    await store.close();
    return [...audit.findings, { kind: "corrupt", detail: failureOf(error).message }];
  }
}
