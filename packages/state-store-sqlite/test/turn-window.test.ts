import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { says, turnOf } from "./scene.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const sessionId = "session-1";
let path = "";
let store: SqliteStore;

/** Two turns that ended and one that runs, of three entries each. */
beforeEach(async () => {
  path = join(folder(), "state.db");
  store = await openSqliteStore(path, { host: virtualHost() });
  for (const name of ["a", "b", "c"]) {
    const turn = await turnOf(store, name);
    for (const at of [1, 2, 3]) await store.transcript.append({ ...turn, entries: [says(`${name}${at}`)] });
    if (name !== "c") await store.turns.end({ ...turn, outcome: "answered", release: true });
  }
});
afterEach(async () => {
  await store.close();
});

async function keysOfTurn(name: string, window: object = { all: true }): Promise<string[]> {
  const { entries } = await store.transcript.load(sessionId, { ...window, turnId: `turn-${name}` });
  return entries.map(({ key }) => key);
}

const damage = (sql: string): void => {
  const database = new Database(path);
  database.exec(sql);
  database.close();
};

test("a turn's window holds its own entries, while it runs and when it has ended, from either end", async () => {
  expect(await keysOfTurn("a")).toEqual(["a1", "a2", "a3"]);
  expect(await keysOfTurn("b")).toEqual(["b1", "b2", "b3"]);
  expect(await keysOfTurn("c")).toEqual(["c1", "c2", "c3"]);
  expect(await keysOfTurn("b", {})).toEqual(["b1", "b2", "b3"]);
  expect(await keysOfTurn("b", { all: true, limit: 1 })).toEqual(["b3"]);
  expect(await keysOfTurn("b", { all: true, first: 2 })).toEqual(["b1", "b2"]);
  expect(await keysOfTurn("b", { all: true, afterSeq: 4, beforeSeq: 6 })).toEqual(["b2"]);
  expect(await keysOfTurn("never-begun")).toEqual([]);
});

test("and what came late for it, however far behind", async () => {
  damage("UPDATE entry SET turn_id = 'turn-a', late = 1 WHERE key = 'c3'");
  expect(await keysOfTurn("a")).toEqual(["a1", "a2", "a3", "c3"]);
  expect(await keysOfTurn("a", { all: true, limit: 2 })).toEqual(["a3", "c3"]);
  expect(await keysOfTurn("a", { all: true, first: 2 })).toEqual(["a1", "a2"]);
  expect(await keysOfTurn("a", {})).toEqual(["a1", "a2", "a3"]);
  expect(await keysOfTurn("c")).toEqual(["c1", "c2"]);
});

test("entries of a turn that has no row are found wherever they are", async () => {
  damage("UPDATE entry SET turn_id = 'turn-lost' WHERE key IN ('a1', 'c3')");
  expect(await keysOfTurn("lost")).toEqual(["a1", "c3"]);
});

test("control: a span that is wrong loses entries, so nothing but the span was read", async () => {
  damage("UPDATE turn SET from_seq = 5 WHERE turn_id = 'turn-b'");
  expect(await keysOfTurn("b")).toEqual(["b2", "b3"]);
});
