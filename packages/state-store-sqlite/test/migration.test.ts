import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { digestOf, sessionFactsOf, titleOf } from "@turnkeeper/state-store";
import type { EntryBody } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { newestSchemaVersion } from "../src/migrations.ts";
import { keysOf, says, turnOf } from "./scene.ts";
import { outputOf, startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

const call = (callId: string, name: string) => ({ type: "tool-call", callId, name, input: {} }) as const;

/** What was said in the sessions of an older store, by session. */
const sessions: Readonly<Record<string, readonly EntryBody[]>> = {
  spoken: [
    { role: "notice", text: "before anybody said anything" },
    { role: "user", text: `  Fix the\n build ${"very ".repeat(80)}` },
    {
      role: "assistant",
      parts: [{ type: "text", text: "on it" }, call("1", "shell"), call("2", "fetch")],
      usage: { inputTokens: 100, outputTokens: 7 },
    },
    { role: "tool", callId: "1", name: "shell", status: "ok", output: { needle: true } },
    { role: "user", text: "and the tests" },
    { role: "assistant", parts: [{ type: "text", text: "done" }], usage: { inputTokens: 50.5, outputTokens: -1 } },
  ],
  "ends-with-a-call": [
    { role: "assistant", parts: [call("1", "shell"), call("2", "fetch")], usage: { outputTokens: 3 } },
  ],
  "ends-with-a-result": [
    { role: "user", text: "数据库 😀" },
    { role: "assistant", parts: [call("1", "shell")] },
    { role: "tool", callId: "1", name: "shell", status: "error", output: "no" },
  ],
  empty: [],
};

/** A store as the first release of the schema left it, with rows in it. */
function firstVersion(path: string, fillerCount = 0): void {
  const migrations = new URL("../migrations/", import.meta.url);
  const [first = ""] = readdirSync(migrations).toSorted();
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  database.exec(readFileSync(new URL(first, migrations), "utf8"));
  database.pragma("user_version = 1");
  const session = database.prepare("INSERT INTO session VALUES (?, ?, 1000, ?, ?, 0, ?, 0)");
  const turn = database.prepare(
    `INSERT INTO turn (session_no, turn_id, fencing_token, holder_id, holder, started_at_ms, outcome, ended_at_ms)
     VALUES (?, ?, 1, 'h', '{}', 0, 'answered', 1)`,
  );
  const entry = database.prepare(
    "INSERT INTO entry (session_no, seq, key, turn_id, body, digest, at_ms, place) VALUES (?, ?, ?, 'turn-1', ?, ?, ?, ?)",
  );
  const write = database.transaction(() => {
    for (const [index, [sessionId, bodies]] of Object.entries(sessions).entries()) {
      session.run(index + 1, sessionId, 2000 + index, bodies.length, bodies.length);
      turn.run(index + 1, "turn-1");
      if (index === 0) turn.run(index + 1, "turn-2");
      for (const [at, body] of bodies.entries())
        entry.run(index + 1, at + 1, `key-${at}`, JSON.stringify(body), digestOf(body), 5000 + at, at + 1);
    }
    session.run(9, "rotten", 1500, 2, 2);
    entry.run(9, 1, "key-1", JSON.stringify({ role: "user", text: "still here" }), "", 1, 1);
    entry.run(9, 2, "key-2", '{"role": "assistant", "par', "", 2, 2);
    session.run(10, "filler", 1400, fillerCount, fillerCount);
    for (let seq = 1; seq <= fillerCount; seq++)
      entry.run(10, seq, `key-${seq}`, JSON.stringify({ role: "user", text: `filler ${seq}` }), "", seq, seq);
  });
  write();
  database.close();
}

test("a store of the first schema is brought up to date: titles, last entries and sums are those of its entries", async () => {
  const path = join(folder(), "state.db");
  firstVersion(path);
  const store = await openSqliteStore(path, { host: systemHost });
  expect(store.file.schemaVersion).toBe(newestSchemaVersion());
  for (const [sessionId, bodies] of Object.entries(sessions)) {
    const { entries } = await store.transcript.load(sessionId, { all: true });
    expect(entries.map(({ body }) => body)).toEqual(bodies);
    const ofTurn = await store.transcript.load(sessionId, { all: true, turnId: "turn-1" });
    expect(ofTurn.entries).toEqual(entries);
    const { firstText = "", lastEntry, ...sums } = sessionFactsOf(entries);
    const record = await store.sessions.read(sessionId);
    const title = titleOf(firstText);
    expect(record).toEqual({
      sessionId,
      createdAtMs: 1000,
      updatedAtMs: record?.updatedAtMs,
      revision: bodies.length,
      entryCount: bodies.length,
      ...(title === "" ? {} : { title }),
      ...(lastEntry ? { lastEntry } : {}),
      totals: { turnCount: sessionId === "spoken" ? 2 : 1, ...sums },
    });
  }
  expect((await store.sessions.read("spoken"))?.title).toMatch(/^Fix the build very very .*…$/);
  expect(await store.sessions.read("rotten")).toMatchObject({ title: "still here", entryCount: 2 });
  expect((await store.transcript.search("needle")).hits).toMatchObject([{ sessionId: "spoken", entry: { seq: 4 } }]);
  expect((await store.transcript.search("still")).hits).toMatchObject([{ sessionId: "rotten" }]);
  const { sessions: listed } = await store.sessions.list();
  expect(listed.map(({ sessionId }) => sessionId)).toEqual([
    "empty",
    "ends-with-a-result",
    "ends-with-a-call",
    "spoken",
    "rotten",
    "filler",
  ]);
  expect((await store.transcript.load("spoken", { all: true, turnId: "turn-2" })).entries).toEqual([]);
  await store.close();
});

test("processes that open an older store together bring it up to date once, and lose nothing", async () => {
  const path = join(folder(), "state.db");
  firstVersion(path, 3_000);
  const told = await Promise.all([1, 2, 3].map(() => outputOf(startProcess("open-store", [path]))));
  expect(told.flat()).toHaveLength(3);
  for (const line of told.flat()) expect(line).toMatchObject({ opened: { schemaVersion: newestSchemaVersion() } });
  const store = await openSqliteStore(path, { host: systemHost });
  expect(await store.sessions.read("filler")).toMatchObject({ title: "filler 1", entryCount: 3_000 });
  expect((await store.transcript.search("filler 2999")).hits).toHaveLength(1);
  await store.close();
}, 60_000);

test("a store that a later release brings further while it is open is read still, and written no more", async () => {
  const path = join(folder(), "state.db");
  const store = await openSqliteStore(path, { host: systemHost });
  const { grant, turnId } = await turnOf(store, "a");
  await store.transcript.append({ grant, turnId, entries: [says("before")] });
  const later = new Database(path);
  later.pragma("user_version = 9999");
  later.close();
  const append = store.transcript.append({ grant, turnId, entries: [says("after")] });
  await expect(append).rejects.toMatchObject({
    code: "STORE_NEWER",
    message: expect.stringMatching(/schema version 9999.*Nothing was written; restart the process/),
    context: { path, version: 9999, knownVersion: newestSchemaVersion(), isIndeterminate: false },
  });
  await expect(store.turns.end({ grant, turnId, outcome: "answered", release: true })).rejects.toMatchObject({
    code: "STORE_NEWER",
  });
  expect(await keysOf(store)).toEqual(["before"]);
  await store.close();
});
