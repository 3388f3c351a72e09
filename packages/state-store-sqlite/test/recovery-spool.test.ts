import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { SpoolStep, StateStore } from "@turnkeeper/state-store";
import { openSqliteStore, recoverStore } from "@turnkeeper/state-store-sqlite";
import { describe, expect, test } from "vitest";
import { recoverHere, sha256, truncate } from "./recovery-scene.ts";
import { grantOfTurn, grantTo, keysOf, says, turnOf } from "./scene.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;
const pathOf = (): string => join(folder(), "state.db");
const outputOf = (): string => join(folder(), "new.db");

const step = (...keys: readonly string[]): SpoolStep => ({
  ...grantOfTurn("a", 1),
  entries: keys.map((key) => says(key)),
});

/** A store on which `a` runs a turn whose last steps it refused, closed. `meanwhile`: while it is open. */
async function refusingStore(meanwhile: (store: StateStore) => Promise<unknown> = async () => {}): Promise<void> {
  const store = await openSqliteStore(pathOf(), { host });
  await turnOf(store, "a");
  await store.transcript.append(step("stored"));
  await store.spool.keep(step("one"));
  await store.spool.keep({ ...step("two"), end: { outcome: "answered" } });
  await meanwhile(store);
  await store.close();
}

/** The next turn on the recovered store. */
async function nextTurn(path: string): Promise<StateStore> {
  const store = await openSqliteStore(path, { host });
  await store.turns.settleForeign(grantOfTurn("a", 1).grant);
  await grantTo(store, "b");
  return store;
}

describe("the spool of a store that is recovered", () => {
  test("SPOOL-1: comes back on the recovered store, by its path alone; the source keeps its own", async () => {
    await refusingStore();
    const file = join(`${pathOf()}-spool`, "session-1.jsonl");
    const before = sha256(file);
    const report = await recoverStore(pathOf(), { output: outputOf() });
    expect(report).toMatchObject({
      isComplete: true,
      spool: [{ session: "session-1", stepCount: 2, damagedCount: 0 }],
    });
    expect(readFileSync(join(`${outputOf()}-spool`, "session-1.jsonl"), "utf8")).toBe(readFileSync(file, "utf8"));
    expect(statSync(`${outputOf()}-spool`).mode & 0o777).toBe(0o700);
    const store = await nextTurn(outputOf());
    expect(await keysOf(store)).toEqual(["stored", "one", "two"]);
    expect(await store.turns.read("session-1", "turn-a")).toMatchObject({ state: "ended", outcome: "answered" });
    expect(existsSync(`${outputOf()}-spool`)).toBe(false);
    await store.close();
    expect(sha256(file)).toBe(before);
  });

  test("is told by an inspection, and nothing of it is left then", async () => {
    await refusingStore();
    const names = readdirSync(folder());
    const report = await recoverStore(pathOf(), { inspectOnly: true });
    expect(report.spool).toEqual([{ session: "session-1", stepCount: 2, damagedCount: 0 }]);
    expect(readdirSync(folder())).toEqual(names);
  });

  test("is not laid over one that is there", async () => {
    await refusingStore();
    mkdirSync(`${outputOf()}-spool`);
    await expect(recoverStore(pathOf(), { output: outputOf() })).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(existsSync(outputOf())).toBe(false);
  });

  test("is said to stay where it cannot be read, and the rest is recovered", async () => {
    await refusingStore();
    writeFileSync(join(folder(), "mine"), "mine\n");
    symlinkSync(join(folder(), "mine"), join(`${pathOf()}-spool`, "other.jsonl"));
    const report = await recoverHere(pathOf(), outputOf());
    expect(report.notes).toContainEqual(
      expect.stringMatching(/^The spool is not brought: .*other\.jsonl: it is a link/),
    );
    expect(report.spool).toEqual([]);
  });
});

test("a turn that the spool alone knows is made up: its steps come back late, and its token is passed over", async () => {
  const copy = join(folder(), "copy.db");
  const files = async (store: StateStore): Promise<void> => {
    await store.leases.release(grantOfTurn("a", 1).grant);
    // The store as it was before the second turn; that one ran, and is lost but for what the spool has.
    spawnSync("sh", ["-c", `for s in "" -wal; do cp "${pathOf()}$s" "${copy}$s"; done`]);
    for (let token = 2; token <= 5; token++) {
      const { grant, turnId } = await turnOf(store, `b${token}`);
      if (token === 5)
        await store.spool.keep({ grant, turnId, entries: [says("lost turn")], end: { outcome: "answered" } });
      else await store.turns.end({ grant, turnId, outcome: "answered", release: true });
    }
  };
  await refusingStore(files);
  spawnSync("cp", ["-r", `${pathOf()}-spool`, `${copy}-spool`]);
  const report = await recoverHere(copy, outputOf());
  expect(report.isComplete).toBe(false);
  expect(report.mends).toContainEqual({
    session: "session-1",
    detail: expect.stringMatching(/^turn turn-b5 is known from the spool alone and is made up as interrupted/),
  });
  const store = await openSqliteStore(outputOf(), { host });
  const { fencingToken } = await grantTo(store, "next");
  expect(fencingToken).toBeGreaterThan(5);
  const { entries } = await store.transcript.load("session-1", { all: true });
  expect(entries.map(({ key, late }) => `${key}${late ? " late" : ""}`)).toEqual([
    "stored",
    "one",
    "two",
    "lost turn/late late",
  ]);
  expect(await store.spool.waiting()).toEqual([]);
  const records = await store.sessions.records("session-1");
  expect(records && verifyRecords(records)).toEqual([]);
  await store.close();
});

test.each([
  ["in its middle", (log: string) => truncate(log, 32 + 3 * (24 + 4096))],
  ["to nothing", (log: string) => truncate(log, 0)],
])("a log that was cut short %s is no whole one: its index tells how much is gone", async (_where, cut) => {
  const copy = join(folder(), "copy.db");
  await refusingStore();
  const store = await openSqliteStore(pathOf(), { host });
  for (const key of ["x", "y", "z"]) await store.transcript.append(step(key));
  spawnSync("sh", ["-c", `for s in "" -wal -shm; do cp "${pathOf()}$s" "${copy}$s"; done`]);
  await store.close();
  const whole = await recoverHere(copy, outputOf());
  expect(whole).toMatchObject({ isComplete: true, source: { missingWalFrameCount: 0 } });
  const frameCount = (statSync(`${copy}-wal`).size - 32) / (24 + 4096);
  cut(`${copy}-wal`);
  const left = Math.max(0, (statSync(`${copy}-wal`).size - 32) / (24 + 4096));
  const report = await recoverHere(copy, join(folder(), "cut.db"));
  expect(report).toMatchObject({ isComplete: false, source: { missingWalFrameCount: frameCount - left } });
});
