import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { openSqliteStore, repairDerived } from "@turnkeeper/state-store-sqlite";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { beforeEach, expect, test } from "vitest";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
let path = "";
let deps = { host: virtualHost() };

const identity = { instanceId: "i", host: "h", bootId: "b", pid: 1 };

/** A session with an ended turn, a summary, and a turn that runs with one open and one answered call. */
async function fill(store: SqliteStore, sessionId: string): Promise<void> {
  const turn = async (name: string) => {
    const runner = { ...identity, runnerId: "r" };
    await store.inbox.offer({ sessionId, inputId: name, text: `hello ${name}`, onBusy: "wait", runner });
    const holder = { ...identity, holderId: `holder-${name}` };
    const begin = { turnId: `turn-${name}`, runnerId: "r" };
    const granted = await store.leases.acquire({ sessionId, holder, ttlMs: 60_000, begin });
    if (granted.kind !== "granted") throw new Error(`not granted: ${granted.kind}`);
    return {
      grant: { sessionId, holderId: holder.holderId, fencingToken: granted.fencingToken },
      turnId: begin.turnId,
    };
  };
  const call = (callId: string) => ({ type: "tool-call", callId, name: "shell", input: {} }) as const;
  const asked = (key: string) => ({ key, body: { role: "assistant", parts: [call("c1"), call("c2")] } }) as const;
  const answered = (key: string) =>
    ({ key, body: { role: "tool", callId: "c1", name: "shell", status: "ok", output: "done" } }) as const;
  const a = await turn("a");
  await store.transcript.append({ ...a, entries: [asked("a1"), answered("a2")] });
  await store.turns.end({ ...a, outcome: "answered", release: true });
  const b = await turn("b");
  const summary = { key: "sum", body: { role: "summary", text: "before" } } as const;
  await store.transcript.applyCompaction({ ...b, basis: { throughSeq: 3, compactionCount: 0 }, summary });
  await store.transcript.append({ ...b, entries: [asked("b1"), answered("b2")] });
}

const rowsOf = (): unknown => {
  const database = new Database(path, { readonly: true });
  const calls = "(SELECT session_no, turn_id, call_id, name, is_open FROM call ORDER BY session_no, call_no)";
  const rows = ["session", "turn", "store", "search_index", calls].map((from) =>
    database.prepare(`SELECT * FROM ${from}`).all(),
  );
  const grams = database.prepare("SELECT count(*) FROM entry_gram_docsize").pluck().get();
  database.close();
  return [rows, grams];
};

const damage = (sql: string): void => {
  const database = new Database(path);
  database.exec(sql);
  database.close();
};

beforeEach(async () => {
  path = join(folder(), "state.db");
  deps = { host: virtualHost() };
  const store = await openSqliteStore(path, deps);
  await fill(store, "one");
  await fill(store, "two");
  await store.close();
  await repairDerived(path, deps);
  const again = await openSqliteStore(path, deps);
  await again.transcript.search("hello");
  await again.close();
});

test("a store as it was written has nothing to repair", async () => {
  const before = rowsOf();
  expect(await repairDerived(path, deps)).toEqual([]);
  expect(rowsOf()).toEqual(before);
});

test("whatever derived value was changed is told, put back by one repair, and told no more", async () => {
  const damages: readonly (readonly [string, RegExp])[] = [
    ["UPDATE session SET last_seq = 2 WHERE session_id = 'one'", /last_seq 2, and its entries say \d/],
    ["UPDATE session SET archived_through_seq = 99 WHERE session_id = 'one'", /archived_through_seq 99/],
    ["UPDATE session SET first_text = NULL WHERE session_id = 'one'", /first_text null, and .* "hello a"/],
    ["UPDATE session SET last_role = 'notice', last_tool = 'x' WHERE session_id = 'one'", /last_role|last_tool/],
    ["UPDATE session SET compaction_count = 0 WHERE session_id = 'one'", /compaction_count 0/],
    ["UPDATE session SET turn_count = 9, tool_call_count = 9, input_tokens = 9, output_tokens = 9", /_count|_tokens/],
    ["UPDATE session SET updated_minute = 5 WHERE session_id = 'one'", /updated_minute 5/],
    [
      "UPDATE turn SET from_seq = 2 WHERE turn_id = 'turn-a'",
      /turn turn-a .* entries 2 to 4, and it has entries 1 to 4/,
    ],
    ["UPDATE turn SET through_seq = 0 WHERE turn_id = 'turn-a'", /turn turn-a .* entries 1 to 0, and it has/],
    ["DELETE FROM call WHERE is_open = 1 AND session_no = 1", /c2 of turn turn-b\]/],
    ["UPDATE call SET is_open = 1", /c1 of turn turn-b/],
    ["UPDATE store SET last_input_seq = 0", /last_input_seq 0, and its inputs say 4/],
    ["DELETE FROM store", /last_input_seq null/],
  ];
  const whole = rowsOf();
  for (const [sql, told] of damages) {
    damage(sql);
    const found = await repairDerived(path, deps, { isDryRun: true });
    expect(found.length, `${sql}`).toBeGreaterThan(0);
    for (const { detail } of found) expect(detail).toMatch(told);
    expect(rowsOf(), `${sql}`).not.toEqual(whole);
    expect(await repairDerived(path, deps)).toEqual(found);
    expect(await repairDerived(path, deps)).toEqual([]);
    expect(rowsOf(), `${sql}`).toEqual(whole);
  }
});

test("of one session only that session is repaired", async () => {
  damage("UPDATE session SET tool_call_count = 9");
  expect((await repairDerived(path, deps, { sessionId: "two" })).map(({ session }) => session)).toEqual(["two"]);
  expect((await repairDerived(path, deps)).map(({ session }) => session)).toEqual(["one"]);
});

test("an index that is broken, or lacks entries it should have, is made anew", async () => {
  for (const sql of [
    "UPDATE search_index SET is_broken = 1, through_entry_no = 0",
    "UPDATE search_index SET through_entry_no = 1000",
    "DELETE FROM search_index",
    "DROP TABLE entry_gram",
  ]) {
    if (sql.startsWith("UPDATE search_index SET through")) damage("DELETE FROM entry_gram");
    damage(sql);
    expect(await repairDerived(path, deps, { isDryRun: true }), `${sql}`).toEqual([
      { detail: expect.stringContaining("search index") },
    ]);
    await repairDerived(path, deps);
    expect(await repairDerived(path, deps), `${sql}`).toEqual([]);
    const store = await openSqliteStore(path, deps);
    expect((await store.transcript.search("hello a")).hits).toHaveLength(2);
    await store.close();
  }
});

test("nothing is derived from an entry that cannot be read", async () => {
  damage(
    "UPDATE entry SET body = '{' WHERE key = 'a1'; UPDATE session SET tool_call_count = 9 WHERE session_id = 'one'",
  );
  expect(await repairDerived(path, deps)).toEqual([]);
});
