import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Connection } from "../src/connection.ts";
import { holderOf, runnerOf, says } from "./scene.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

/** Tables of one row each, lists that are as long as what runs at this moment, and the sessions of one minute. */
const small = [
  /^SCAN (store|search_index)\b/,
  /^SCAN turn USING INDEX turn_running/,
  /B-TREE FOR ORDER BY: SELECT \* FROM turn JOIN session .* outcome IS NULL/s,
  /B-TREE FOR ORDER BY: SELECT call_id .* is_open = 1/s,
  /B-TREE FOR LAST 2 TERMS OF ORDER BY: SELECT \* FROM session .* ORDER BY updated_minute DESC/s,
];

/** Whether a step of a plan takes longer the more the store holds: a whole table, or a sort. */
function grows(step: string): boolean {
  return (
    /^SCAN|TEMP B-TREE/.test(step) &&
    !/^SCAN (CONSTANT ROW|\w+ VIRTUAL TABLE)/.test(step) &&
    !small.some((one) => one.test(step))
  );
}

interface Recorded {
  readonly store: StateStore;
  /** Runs the act and answers the steps that grow with the store, each with its statement. */
  growingSteps(act: () => Promise<unknown>): Promise<readonly string[]>;
  close(): Promise<void>;
}

async function recorded(): Promise<Recorded> {
  const path = join(folder(), "state.db");
  const statements = new Set<string>();
  for (const method of ["get", "all", "lists", "iterate", "run"] as const) {
    const original = Reflect.get(Connection.prototype, method);
    vi.spyOn(Connection.prototype, method).mockImplementation(function (this: Connection, sql: string, ...values) {
      statements.add(sql);
      return Reflect.apply(original, this, [sql, ...values]) as never;
    });
  }
  const store = await openSqliteStore(path, { host: virtualHost() });
  const database = new Database(path);
  return {
    store,
    growingSteps: async (act) => {
      statements.clear();
      await act();
      return [...statements]
        .filter((sql) => /^(SELECT|INSERT|UPDATE|DELETE)/.test(sql))
        .flatMap((sql) => {
          const steps = database
            .prepare(`EXPLAIN QUERY PLAN ${sql}`)
            .bind(...Array.from(sql.matchAll(/\?/g), () => null));
          return (steps.all() as { detail: string }[]).map(({ detail }) => `${detail}: ${sql}`).filter(grows);
        });
    },
    close: async () => {
      database.close();
      await store.close();
    },
  };
}

let rows: Recorded;

beforeEach(async () => {
  rows = await recorded();
});

afterEach(async () => {
  await rows.close();
  vi.restoreAllMocks();
});

const sessionId = "session-1";

async function runTurn(name: string): Promise<void> {
  const { store } = rows;
  await store.inbox.offer({
    sessionId,
    inputId: `input-${name}`,
    text: "hello",
    onBusy: "wait",
    runner: runnerOf(name),
  });
  const turnId = `turn-${name}`;
  const begin = { turnId, runnerId: `runner-${name}` };
  const granted = await store.leases.acquire({ sessionId, holder: holderOf(name), ttlMs: 60_000, begin });
  if (granted.kind !== "granted") throw new Error(`The session is ${granted.kind}.`);
  const grant = { sessionId, holderId: `holder-${name}`, fencingToken: granted.fencingToken };
  await store.leases.renew(grant, 60_000);
  await store.transcript.append({ grant, turnId, entries: [says(`${name}/said`)] });
  const { entries, compactionCount } = await store.transcript.load(sessionId);
  const basis = { throughSeq: entries[0]?.seq ?? 0, compactionCount };
  const summary = { key: `${name}/summary`, body: { role: "summary", text: "so far" } } as const;
  await store.transcript.applyCompaction({ grant, turnId, basis, summary });
  await store.transcript.load(sessionId);
  await store.turns.running();
  await store.turns.running(sessionId);
  await store.turns.stopRequest(sessionId, turnId);
  await store.inbox.takeSteers(grant, turnId);
  await store.turns.end({ grant, turnId, outcome: "answered", release: true });
}

describe("whatever the store holds", () => {
  test("a turn reads only what it needs: offer, grant, append, compaction, context, running turns, end", async () => {
    expect(
      await rows.growingSteps(async () => {
        await runTurn("a");
        await runTurn("b");
      }),
    ).toEqual([]);
  });

  test("a window of a transcript is found by an index, in its order, from either end", async () => {
    await runTurn("a");
    const { transcript } = rows.store;
    const windows = [
      {},
      { all: true },
      { all: true, limit: 2 },
      { all: true, first: 2, afterSeq: 1 },
      { all: true, limit: 2, beforeSeq: 3 },
      { limit: 2 },
      { first: 2 },
      { all: true, turnId: "turn-a" },
      { all: true, turnId: "turn-a", limit: 1 },
      { turnId: "turn-a" },
    ];
    for (const window of windows)
      expect({ window, steps: await rows.growingSteps(() => transcript.load(sessionId, window)) }).toEqual({
        window,
        steps: [],
      });
  });

  test("a page of sessions is read by an index, and no transcript with it", async () => {
    await runTurn("a");
    const { sessions } = rows.store;
    expect(await rows.growingSteps(() => sessions.list({ limit: 10 }))).toEqual([]);
    expect(await rows.growingSteps(() => sessions.list({ limit: 10, cursor: "5/session-1" }))).toEqual([]);
    expect(await rows.growingSteps(() => sessions.read(sessionId))).toEqual([]);
  });

  test("a search reads in pieces, by the index or from the newest entry down", async () => {
    await runTurn("a");
    const { transcript } = rows.store;
    expect(await rows.growingSteps(() => transcript.search("text of"))).toEqual([]);
    expect(await rows.growingSteps(() => transcript.search("text of", { sessionId }))).toEqual([]);
  });

  test("control: a sort and a scan are seen where there is one", async () => {
    const steps = await rows.growingSteps(() => rows.store.sessions.records(sessionId));
    expect(steps).toEqual([]);
    expect(grows("SCAN entry: SELECT body FROM entry")).toBe(true);
    expect(grows("USE TEMP B-TREE FOR ORDER BY: SELECT body FROM entry ORDER BY digest")).toBe(true);
  });
});
