import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { Grant } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Connection } from "../src/connection.ts";
import { Transaction } from "../src/transaction.ts";
import { WriteGroup } from "../src/write-group.ts";
import { grantTo, holderOf, keysOf, says } from "./scene.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = virtualHost();

let store: SqliteStore;
beforeEach(async () => {
  store = await openSqliteStore(join(folder(), "state.db"), { host });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
  expect(host.pendingTimerCount()).toBe(0);
});

interface Running {
  readonly grant: Grant;
  readonly turnId: string;
}

function running(count: number): Promise<Running[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const grant = await grantTo(store, `${index}`, `session-${index}`);
      await store.turns.begin(grant, "turn", []);
      return { grant, turnId: "turn" };
    }),
  );
}

const append = (turn: Running, key: string, text?: string) =>
  store.transcript.append({ ...turn, entries: [says(key, text)] });

function systemError(code: string): Error {
  return Object.assign(new Error(`it failed with ${code}`), { code });
}

/** Makes the insertion of the entry whose text is `text` fail as `fail` says. */
function failAt(text: string, fail: (rows: Connection) => never): void {
  const run = vi.spyOn(Connection.prototype, "run");
  const real = run.getMockImplementation() ?? Connection.prototype.run;
  run.mockRestore();
  vi.spyOn(Connection.prototype, "run").mockImplementation(function (this: Connection, sql, ...values) {
    if (sql.includes("INSERT INTO entry") && values.some((value) => String(value).includes(text))) fail(this);
    return real.call(this, sql, ...values);
  });
}

describe("appends that arrive together", () => {
  test("share one transaction, and are answered after its commit", async () => {
    const turns = await running(20);
    const commit = vi.spyOn(Connection.prototype, "commit");
    let answeredCount = 0;
    const answers = turns.map(async (turn) => {
      const answer = await append(turn, "key");
      answeredCount++;
      return answer;
    });
    commit.mockImplementationOnce(function (this: Connection) {
      expect(answeredCount).toBe(0);
      this.run("COMMIT");
    });
    expect(await Promise.all(answers)).toMatchObject(turns.map(() => ({ kind: "committed" })));
    expect(commit).toHaveBeenCalledTimes(1);
    for (const { grant } of turns) expect(await keysOf(store, grant.sessionId)).toEqual(["key"]);
  });

  test("so do those that other sessions send when they are answered", async () => {
    const turns = await running(8);
    const commit = vi.spyOn(Connection.prototype, "commit");
    const steps = turns.map(async (turn) => {
      for (const key of ["1", "2", "3"]) await append(turn, key);
    });
    await Promise.all(steps);
    expect(commit).toHaveBeenCalledTimes(3);
  });

  test("fail alone: a refused member changes nothing and is told after the commit, the others are committed", async () => {
    const [first, second, third] = (await running(3)) as [Running, Running, Running];
    await append(second, "known", "as it was");
    const commit = vi.spyOn(Connection.prototype, "commit");
    const told: string[] = [];
    const noted = async (name: string, call: Promise<unknown>): Promise<unknown> => {
      const result = await call.catch((error: unknown) => error);
      told.push(name);
      return result;
    };
    commit.mockImplementationOnce(function (this: Connection) {
      expect(told).toEqual([]);
      this.run("COMMIT");
    });
    const stale = { grant: { ...third.grant, holderId: "holder-other" }, turnId: "turn" };
    const conflicting = store.transcript.append({
      ...second,
      entries: [says("new"), says("known", "something else")],
    });
    expect(
      await Promise.all([
        noted("first", append(first, "key")),
        noted("conflict", conflicting),
        noted("stale", append(stale, "key")),
        noted("third", append(third, "key")),
      ]),
    ).toMatchObject([
      { kind: "committed" },
      { code: "ENTRY_CONFLICT" },
      { kind: "stale-token" },
      { kind: "committed" },
    ]);
    expect(commit).toHaveBeenCalledTimes(1);
    expect(told.toSorted()).toEqual(["conflict", "first", "stale", "third"]);
    expect(await keysOf(store, "session-0")).toEqual(["key"]);
    expect(await keysOf(store, "session-1")).toEqual(["known"]);
    expect(await keysOf(store, "session-2")).toEqual(["key"]);
  });

  test("and a member that is refused after it has written leaves nothing of it", async () => {
    const [first, second] = (await running(2)) as [Running, Running];
    // Its turn settles an input that it never took.
    const half = store.transcript.append({
      ...second,
      entries: [says("half")],
      settledInputs: [{ inputId: "never-taken", end: "answered" }],
    });
    const results = await Promise.allSettled([append(first, "key"), half]);
    expect(results).toMatchObject([{ value: { kind: "committed" } }, { reason: { code: "STORE_CONTRACT" } }]);
    expect(await keysOf(store, "session-0")).toEqual(["key"]);
    expect(await keysOf(store, "session-1")).toEqual([]);
  });

  test("control: without a savepoint of its own a refused member leaves half of its entries", async () => {
    const [first, second] = (await running(2)) as [Running, Running];
    await append(second, "known", "as it was");
    const real = Connection.prototype.run;
    vi.spyOn(Connection.prototype, "run").mockImplementation(function (this: Connection, sql, ...values) {
      return sql.startsWith("ROLLBACK TO") ? 0 : real.call(this, sql, ...values);
    });
    // The refusal comes after the member has written: its turn settles an input that it never took.
    const half = store.transcript.append({
      ...second,
      entries: [says("half")],
      settledInputs: [{ inputId: "never-taken", end: "answered" }],
    });
    const results = await Promise.allSettled([append(first, "key"), half]);
    expect(results[1]).toMatchObject({ reason: { code: "STORE_CONTRACT" } });
    expect(await keysOf(store, "session-1")).toEqual(["known", "half"]);
  });

  test("rule 7.8: wait for the disk as the strictest of them asks", async () => {
    const [first, second] = (await running(2)) as [Running, Running];
    const begin = vi.spyOn(Connection.prototype, "begin");
    await Promise.all([store.leases.renew(first.grant, 60_000), append(second, "key")]);
    expect(begin.mock.calls).toEqual([["full"]]);
  });

  test("keep the order of calls: a release never overtakes an append of its session", async () => {
    const [turn] = (await running(1)) as [Running];
    const next = { sessionId: "session-0", holder: holderOf("next"), ttlMs: 1_000 };
    const answers = await Promise.all([
      append(turn, "key"),
      store.turns.end({ ...turn, outcome: "answered", release: true }),
      append(turn, "late"),
      store.leases.acquire(next),
    ]);
    expect(answers).toMatchObject([
      { kind: "committed" },
      { kind: "ended" },
      { kind: "stale-token" },
      { kind: "granted", fencingToken: 2 },
    ]);
  });
});

describe("a group whose transaction fails", () => {
  test("at its commit leaves every member indeterminate; repeated, each is there once", async () => {
    const turns = await running(3);
    vi.spyOn(Connection.prototype, "commit").mockImplementationOnce(function (this: Connection) {
      this.run("COMMIT");
      throw systemError("SQLITE_IOERR_WRITE");
    });
    const refused = { grant: { ...(turns[0] as Running).grant, holderId: "holder-other" }, turnId: "turn" };
    const settles = [{ inputId: "never-taken", end: "answered" } as const];
    const conflicting = { ...(turns[1] as Running), entries: [says("half")], settledInputs: settles };
    const results = await Promise.allSettled([
      ...turns.map((turn) => append(turn, "key")),
      append(refused, "key-2"),
      store.transcript.append(conflicting),
    ]);
    for (const result of results)
      expect(result).toMatchObject({ reason: { code: "STORE_IO", context: { isIndeterminate: true } } });
    expect(await Promise.all(turns.map((turn) => append(turn, "key")))).toMatchObject(
      turns.map(() => ({ kind: "committed" })),
    );
    for (const { grant } of turns) expect(await keysOf(store, grant.sessionId)).toEqual(["key"]);
  });

  test("because SQLite took all of it back is run again member by member", async () => {
    const turns = await running(3);
    failAt("too much", (rows) => {
      rows.rollback();
      throw systemError("SQLITE_FULL");
    });
    const results = await Promise.allSettled([
      append(turns[0] as Running, "key"),
      append(turns[1] as Running, "key", "too much"),
      append(turns[2] as Running, "key"),
    ]);
    expect(results).toMatchObject([
      { value: { kind: "committed" } },
      { reason: { code: "STORE_FULL", context: { isIndeterminate: false } } },
      { value: { kind: "committed" } },
    ]);
    vi.restoreAllMocks();
    const keys = await Promise.all(turns.map(({ grant }) => keysOf(store, grant.sessionId)));
    expect(keys).toEqual([["key"], [], ["key"]]);
  });

  test("and whoever finds the lock taken meanwhile waits, with those behind it", async () => {
    const turns = await running(3);
    failAt("too much", (rows) => {
      rows.rollback();
      throw systemError("SQLITE_FULL");
    });
    const { begin } = Connection.prototype;
    let beginCount = 0;
    vi.spyOn(Connection.prototype, "begin").mockImplementation(function (this: Connection, durability) {
      // Together, the first alone, and then the second, which is too late.
      if (++beginCount === 3) throw systemError("SQLITE_BUSY");
      begin.call(this, durability);
    });
    const answers = Promise.allSettled([
      append(turns[0] as Running, "key", "too much"),
      append(turns[1] as Running, "key"),
      append(turns[2] as Running, "key"),
    ]);
    await host.advance(64);
    expect(await answers).toMatchObject([
      { reason: { code: "STORE_FULL" } },
      { value: { kind: "committed" } },
      { value: { kind: "committed" } },
    ]);
    expect(beginCount).toBe(4);
  });

  test("control: taken for a refusal of the member, it fails those that did nothing wrong", async () => {
    const turns = await running(2);
    failAt("too much", (rows) => {
      rows.rollback();
      throw systemError("SQLITE_FULL");
    });
    const rows: Connection[] = [];
    vi.spyOn(Connection.prototype, "begin").mockImplementationOnce(function (this: Connection) {
      rows.push(this);
      this.run("BEGIN IMMEDIATE");
    });
    vi.spyOn(WriteGroup.prototype, "stage").mockImplementationOnce(function (this: WriteGroup, durability) {
      for (const write of this.writes) {
        try {
          for (const connection of rows) write.stage(new Transaction(connection, host.clock, durability));
        } catch (error) {
          expect(error).toMatchObject({ code: "SQLITE_FULL" });
        }
      }
    });
    const [unharmed] = await Promise.allSettled([
      append(turns[0] as Running, "key"),
      append(turns[1] as Running, "key", "too much"),
    ]);
    expect(unharmed).toMatchObject({ status: "rejected" });
    vi.restoreAllMocks();
    expect(await keysOf(store, "session-0")).toEqual([]);
  });

  test("by a fault of one member fails that one alone", async () => {
    const turns = await running(2);
    const fault = new TypeError("undefined is not a function");
    failAt("faulty", () => {
      throw fault;
    });
    const results = await Promise.allSettled([
      append(turns[0] as Running, "key", "faulty"),
      append(turns[1] as Running, "key"),
    ]);
    expect(results).toMatchObject([{ reason: fault }, { value: { kind: "committed" } }]);
  });

  test("by structural damage seals the store, and every member is told so", async () => {
    const turns = await running(3);
    failAt("damaged", () => {
      throw systemError("SQLITE_CORRUPT");
    });
    // The second is refused, so each is staged in a savepoint of its own: the damage is no refusal of the third.
    const settledInputs = [{ inputId: "never-taken", end: "answered" } as const];
    const results = await Promise.allSettled([
      append(turns[0] as Running, "key"),
      store.transcript.append({ ...(turns[1] as Running), entries: [says("half")], settledInputs }),
      append(turns[2] as Running, "key", "damaged"),
    ]);
    expect(results).toMatchObject([1, 2, 3].map(() => ({ reason: { code: "STORE_CORRUPT" } })));
  });

  test("on a lock that came between is run again as a whole, in its order", async () => {
    const turns = await running(3);
    let busyCount = 0;
    failAt("contended", () => {
      if (busyCount++ > 0) throw new Error("The mock was not removed.");
      vi.restoreAllMocks();
      throw systemError("SQLITE_BUSY");
    });
    const order: number[] = [];
    const answers = turns.map(async (turn, index) => {
      await append(turn, "key", index === 1 ? "contended" : "free");
      order.push(index);
    });
    await host.advance(64);
    await Promise.all(answers);
    expect(busyCount).toBe(1);
    expect(order).toEqual([0, 1, 2]);
  });
});
