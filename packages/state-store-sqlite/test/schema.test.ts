import { copyFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { expect, test, vi } from "vitest";
import { Connection } from "../src/connection.ts";
import { newestSchemaVersion, schemaVersion } from "../src/migrations.ts";
import { outputOf, startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

/** The schema as SQLite keeps it, in the order of the migrations. */
function dump(path: string): string {
  const database = new Database(path, { readonly: true });
  const statements = database
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    .pluck()
    .all() as string[];
  const version = database.pragma("user_version", { simple: true });
  database.close();
  return `-- Schema version ${String(version)}, as the migrations make it. A test compares them; vitest -u writes this file anew.\n\n${statements.join(";\n\n")};\n`;
}

test("the committed schema is what the migrations make", async () => {
  const path = join(folder(), "state.db");
  await (await openSqliteStore(path, { host: systemHost })).close();
  await expect(dump(path)).toMatchFileSnapshot("../schema.sql");
});

test("migrations are numbered one by one, without a hole and none twice", () => {
  const names = readdirSync(new URL("../migrations/", import.meta.url)).toSorted();
  expect(names.map((name) => Number(name.slice(0, 4)))).toEqual(names.map((_, index) => index + 1));
});

test("opening again changes nothing of the schema", async () => {
  const path = join(folder(), "state.db");
  await (await openSqliteStore(path, { host: systemHost })).close();
  const first = dump(path);
  await (await openSqliteStore(path, { host: systemHost })).close();
  expect(dump(path)).toBe(first);
});

test("processes that start together on new files make each schema once, and all of them get a WAL", async () => {
  const paths = Array.from({ length: 20 }, (_, index) => join(folder(), `state-${index}.db`));
  const told = await Promise.all([1, 2, 3].map(() => outputOf(startProcess("open-store", paths))));
  for (const line of told.flat())
    expect(line).toMatchObject({ opened: { schemaVersion: newestSchemaVersion(), journalMode: "wal" } });
  expect(told.flat()).toHaveLength(60);
  for (const path of paths) expect(dump(path)).toBe(dump(paths[0] as string));
}, 120_000);

test("a store that another process makes in the middle of a look is not taken for another program's", async () => {
  const made = join(folder(), "made.db");
  await (await openSqliteStore(made, { host: systemHost })).close();
  const path = join(folder(), "state.db");
  writeFileSync(path, "");
  const reader = new Connection(path, "read");
  let isMade = false;
  const makeAfter = <Answer>(answer: Answer): Answer => {
    if (!isMade) copyFileSync(made, path);
    isMade = true;
    return answer;
  };
  const { get, pragma } = Connection.prototype;
  vi.spyOn(Connection.prototype, "get").mockImplementation(function (this: Connection, ...call) {
    return makeAfter(get.apply(this, call));
  });
  vi.spyOn(Connection.prototype, "pragma").mockImplementation(function (this: Connection, ...call) {
    return makeAfter(pragma.apply(this, call));
  });
  expect(schemaVersion(reader, path)).toBe(0);
  expect(isMade).toBe(true);
  vi.restoreAllMocks();
  expect(schemaVersion(reader, path)).toBe(newestSchemaVersion());
  reader.close();
});

test("rows that make no sense are refused by the schema itself", async () => {
  const path = join(folder(), "state.db");
  await (await openSqliteStore(path, { host: systemHost })).close();
  const database = new Database(path);
  database.exec(
    `INSERT INTO session (session_no, session_id, created_at_ms, updated_at_ms, revision, compaction_count, last_seq,
       archived_through_seq) VALUES (1, 's', 0, 0, 0, 0, 0, 0)`,
  );
  const turn = "INSERT INTO turn (session_no, turn_id, fencing_token, holder_id, holder, started_at_ms) VALUES";
  const input = "INSERT INTO input (session_no, input_id, seq, text, digest, delivery, offered_at_ms";
  database.exec(`${turn} (1, 't1', 1, 'h', '{}', 0)`);
  for (const nonsense of [
    "INSERT INTO lease (session_id, fencing_token) VALUES ('s', 0)",
    "INSERT INTO lease (session_id, fencing_token, holder_id) VALUES ('s', 1, 'half a holder')",
    `${turn} (1, 't2', 2, 'h', '{}', 0) -- a second one that runs`,
    "UPDATE turn SET outcome = 'answered'",
    `${input}, turn_id) VALUES (1, 'i', 1, '', '', 'turn', 0, 'a turn that never was')`,
    `${input}, ended_as) VALUES (1, 'i', 1, '', '', 'turn', 0, 'answered')`,
    `${input}, ended_as, ended_at_ms) VALUES (1, 'i', 1, '', '', 'turn', 0, 'lost', 0)`,
    `${input}, turn_id, runner_id, runner) VALUES (1, 'i', 1, '', '', 'turn', 0, 't1', 'r', '{}')`,
    `INSERT INTO entry (session_no, seq, key, turn_id, body, digest, at_ms, place) VALUES (2, 1, 'k', 't1', '', '', 0, 1)`,
  ])
    expect(() => database.exec(nonsense), `${nonsense} was stored`).toThrow(/constraint failed/);
  database.close();
});
