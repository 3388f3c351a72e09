import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { checkStructure, openSqliteStore, rebuildSearchIndex, repairDerived } from "@turnkeeper/state-store-sqlite";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Connection } from "../src/connection.ts";
import { isFinal } from "../src/store-failure.ts";
import { overwrite, pageSize } from "./recovery-scene.ts";
import { grantOfTurn, says, turnOf } from "./scene.ts";
import { outputOf, startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = virtualHost();
let path = "";
let store: SqliteStore;

beforeEach(async () => {
  path = join(folder(), "state.db");
  store = await openSqliteStore(path, { host });
});

afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
});

/** A turn that says so many texts, with `needle` in every tenth. */
async function saying(count: number): Promise<{ more(key: string, text: string): Promise<void> }> {
  const { grant, turnId } = await turnOf(store, "a");
  const entries = Array.from({ length: count }, (_, index) =>
    says(`text-${index}`, index % 10 === 0 ? `a needle, the ${index}th` : `hay ${index}`),
  );
  for (let at = 0; at < count; at += 200)
    await store.transcript.append({ grant, turnId, entries: entries.slice(at, at + 200) });
  return {
    more: async (key, text) => {
      const { kind } = await store.transcript.append({ grant, turnId, entries: [says(key, text)] });
      expect(kind).toBe("committed");
    },
  };
}

async function found(text: string): Promise<readonly string[]> {
  return (await store.transcript.search(text, { limit: 1_000 })).hits.map(({ entry }) => entry.key);
}

/** Every tenth key, the last stored first. */
function needles(count: number): readonly string[] {
  return Array.from({ length: Math.ceil(count / 10) }, (_, index) => `text-${index * 10}`).toReversed();
}

function onFile<T>(act: (database: Database.Database) => T): T {
  const database = new Database(path);
  database.unsafeMode();
  try {
    return act(database);
  } finally {
    database.close();
  }
}

interface IndexRow {
  readonly through_entry_no: number;
  readonly is_broken: number;
}

const indexRow = (): IndexRow => onFile((database) => database.prepare("SELECT * FROM search_index").get() as IndexRow);

/** The statements that `act` runs on the index. */
async function indexStatements(act: () => Promise<unknown>): Promise<readonly string[]> {
  const seen: string[] = [];
  for (const method of ["all", "run"] as const) {
    const original = Reflect.get(Connection.prototype, method);
    vi.spyOn(Connection.prototype, method).mockImplementation(function (this: Connection, sql: string, ...values) {
      if (sql.includes("entry_gram")) seen.push(sql.trim().slice(0, 6));
      return Reflect.apply(original, this, [sql, ...values]) as never;
    });
  }
  await act();
  vi.restoreAllMocks();
  return seen;
}

/** A page of each of the index's own tables, by the table. */
function indexPages(): readonly { readonly name: string; readonly page: number }[] {
  return onFile((database) =>
    database
      .prepare<[], { name: string; page: number }>(
        "SELECT name, max(pageno) AS page FROM dbstat WHERE name GLOB 'entry_gram_*' GROUP BY name",
      )
      .all(),
  );
}

describe("a damaged page of the search index", () => {
  test.each(["entry_gram_data", "entry_gram_idx", "entry_gram_docsize"])(
    "of %s stops no search and no write, is told apart, and goes when it is made anew",
    { timeout: 60_000 },
    async (table) => {
      await saying(600);
      expect(await found("needle")).toEqual(needles(600));
      await store.close();
      const page = indexPages().find(({ name }) => name === table)?.page ?? 0;
      overwrite(path, (page - 1) * pageSize, Buffer.alloc(pageSize, 0xee));
      expect(await checkStructure(path)).toEqual({
        faults: [],
        indexFaults: expect.arrayContaining([expect.stringContaining(table)]),
      });

      store = await openSqliteStore(path, { host });
      expect(await found("needle")).toEqual(needles(600));
      const { grant, turnId } = grantOfTurn("a", 1);
      const more = { grant, turnId, entries: [says("newest", "one more needle")] };
      expect(await store.transcript.append(more)).toMatchObject({ kind: "committed" });
      await rebuildSearchIndex(path, { host });
      expect(indexRow()).toMatchObject({ through_entry_no: 601, is_broken: 0 });
      expect(await found("needle")).toEqual(["newest", ...needles(600)]);
      expect(await repairDerived(path, { host })).toEqual([]);
      expect(await checkStructure(path)).toEqual({ faults: [], indexFaults: [] });
    },
  );

  test("is told apart from one of the store's own indexes", { timeout: 60_000 }, async () => {
    await saying(300);
    await found("needle");
    await store.close();
    const page = onFile((database) =>
      database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'input_pending'").pluck().get(),
    );
    overwrite(path, (Number(page) - 1) * pageSize, Buffer.alloc(pageSize, 0xee));
    expect(await checkStructure(path)).toEqual({
      faults: expect.arrayContaining([expect.stringMatching(/^input: .*page/)]),
      indexFaults: [],
    });
    store = await openSqliteStore(path, { host });
  });
});

test("an index that has the right number of entries and not what they say is found out, and made anew", async () => {
  await saying(600);
  await found("needle");
  onFile((database) => {
    database.exec("DELETE FROM entry_gram WHERE rowid = 11");
    database.exec("INSERT INTO entry_gram (rowid, grams) VALUES (11, 'not what it says')");
  });
  const fault = { detail: "the search index does not find entry number 11" };
  expect(await repairDerived(path, { host }, { isDryRun: true })).toEqual([fault]);
  expect(await found("needle")).not.toContain("text-10");
  expect(await repairDerived(path, { host })).toEqual([fault]);
  expect(await found("needle")).toEqual(needles(600));
  expect(await repairDerived(path, { host })).toEqual([]);
});

describe("the search index", () => {
  test("is not touched by an append, and is filled by a search that finds many entries outside it", async () => {
    let more: ((key: string, text: string) => Promise<void>) | undefined;
    expect(await indexStatements(async () => void ({ more } = await saying(1_000)))).toEqual([]);
    expect(indexRow()).toEqual({ index_no: 1, through_entry_no: 0, is_broken: 0 });
    expect(await found("needle")).toEqual(needles(1_000));
    expect(indexRow().through_entry_no).toBe(1_000);
    await more?.("newest", "one more needle");
    const statements = await indexStatements(async () =>
      expect(await found("needle")).toEqual(["newest", ...needles(1_000)]),
    );
    expect(new Set(statements)).toEqual(new Set(["SELECT"]));
    expect(indexRow().through_entry_no).toBe(1_000);
  });

  test("holds what a term of any kind is found by, wherever the term stands", async () => {
    const texts = [
      "Grüße aus München",
      "数据库连接失败",
      `"quoted" \\ 'it''s' (a) ^b`,
      "x".repeat(300_000),
      "İstanbul",
      "tail",
    ];
    const { more } = await saying(300);
    for (const [index, text] of texts.entries()) await more(`odd-${index}`, text);
    await store.transcript.search("hay");
    expect(indexRow().through_entry_no).toBe(306);
    for (const [index, term] of ["ße", "败", `'it''s'`, "xxxx", "i̇s", "tail"].entries())
      expect({ term, keys: await found(term) }).toEqual({ term, keys: [`odd-${index}`] });
    expect(await found("连接 失败")).toEqual(["odd-1"]);
    expect(await found("(a) ^b")).toEqual(["odd-2"]);
  });

  test("forgets a deleted session before its numbers come round again", async () => {
    await saying(600);
    await found("needle");
    const { holder, fencingToken } = (await store.leases.read("session-1")) ?? expect.fail("no lease");
    await store.leases.release({ sessionId: "session-1", holderId: holder.holderId, fencingToken });
    await store.sessions.delete("session-1");
    expect(indexRow().through_entry_no).toBe(0);
    const { grant, turnId } = await turnOf(store, "b");
    const entries = Array.from({ length: 400 }, (_, index) =>
      says(`new-${index}`, index === 3 ? "straw and needle" : "straw"),
    );
    await store.transcript.append({ grant, turnId, entries });
    expect(await found("needle")).toEqual(["new-3"]);
    expect(indexRow().through_entry_no).toBe(400);
    const left = onFile((database) =>
      database.prepare("SELECT count(*) AS count FROM entry_gram WHERE entry_gram MATCH '\"hay\"'").get(),
    );
    expect(left).toEqual({ count: 0 });
  });

  test("is filled by processes that search at once, without taking anything in twice", async () => {
    const count = 2_000;
    const { more } = await saying(count);
    const searches = [1, 2, 3].map(() => outputOf(startProcess("search-store", [path, "needle"])));
    for (let index = 0; index < 20; index++) await more(`meanwhile-${index}`, "hay");
    for (const told of await Promise.all(searches)) expect(told).toEqual([{ found: needles(count) }]);
    expect(indexRow().through_entry_no).toBeGreaterThanOrEqual(count);
    const taken = onFile((database) => database.prepare("SELECT count(*) AS count FROM entry_gram_docsize").get());
    expect(taken).toEqual({ count: indexRow().through_entry_no });
    expect(await found("needle")).toEqual(needles(count));
  }, 60_000);

  test("is not waited for: a search that may not write reads everything, in the event loop's own time", async () => {
    await saying(700);
    const holder = new Database(path);
    holder.exec("BEGIN IMMEDIATE");
    const search = found("needle");
    // The patience of a piece ends.
    for (let count = 0; count < 400; count++) await host.advance(50);
    expect(await search).toEqual(needles(700));
    expect(indexRow().through_entry_no).toBe(0);
    holder.exec("ROLLBACK");
    holder.close();
  });
});

const damages: readonly (readonly [string, string])[] = [
  ["its pages are gone", "DELETE FROM entry_gram_data WHERE id > 10"],
  ["its pages are rubbish", "UPDATE entry_gram_data SET block = zeroblob(3) WHERE id > 10"],
  ["all of its data is gone", "DELETE FROM entry_gram_data"],
  ["a table of it is missing: data", "DROP TABLE entry_gram_data"],
  ["a table of it is missing: idx", "DROP TABLE entry_gram_idx"],
  ["a table of it is missing: docsize", "DROP TABLE entry_gram_docsize"],
  ["a table of it is missing: config", "DROP TABLE entry_gram_config"],
  ["its format is unknown", "UPDATE entry_gram_config SET v = 99 WHERE k = 'version'"],
  ["it is missing itself", "DROP TABLE entry_gram"],
];

describe("a search index that is broken", () => {
  for (const [what, damage] of damages)
    test(`stops no write, no search and no deletion, and seals nothing: ${what}`, async () => {
      await saying(1_000);
      expect(await found("needle")).toEqual(needles(1_000));
      await store.close();
      onFile((database) => database.exec(damage));
      store = await openSqliteStore(path, { host });
      const { holder, fencingToken } = (await store.leases.read("session-1")) ?? expect.fail("no lease");
      const grant = { sessionId: "session-1", holderId: holder.holderId, fencingToken };
      const turnId = "turn-a";
      // Enough that the next search also wants to take something in.
      const entries = Array.from({ length: 400 }, (_, index) => says(`new-${index}`, "a new needle"));
      expect((await store.transcript.append({ grant, turnId, entries })).kind).toBe("committed");
      const all = [...entries.map(({ key }) => key).toReversed(), ...needles(1_000)];
      expect(await found("needle")).toEqual(all);
      expect(await found("needle")).toEqual(all);
      expect(indexRow().is_broken).toBe(1);
      expect((await store.transcript.append({ grant, turnId, entries: [says("after", "the last")] })).kind).toBe(
        "committed",
      );
      await store.leases.release(grant);
      expect(await store.sessions.delete("session-1")).toEqual({ kind: "deleted" });
      expect(await found("needle")).toEqual([]);
    });

  test("is no structural damage to whoever meets it, as damage of any other table is", () => {
    const failed = (code: string): Error => Object.assign(new Error("malformed"), { code });
    expect(isFinal(failed("SQLITE_CORRUPT_VTAB"))).toBe(false);
    for (const code of ["SQLITE_CORRUPT", "SQLITE_CORRUPT_INDEX", "SQLITE_CORRUPT_SEQUENCE"])
      expect(isFinal(failed(code))).toBe(true);
  });

  test("is left alone by whatever process comes next, until it is made anew", async () => {
    await saying(600);
    await found("needle");
    onFile((database) => database.exec("DELETE FROM entry_gram_data WHERE id > 10"));
    await store.close();
    store = await openSqliteStore(path, { host });
    expect(await found("needle")).toEqual(needles(600));
    expect(await indexStatements(() => found("needle"))).toEqual([]);
    await rebuildSearchIndex(path, { host });
    expect(indexRow()).toMatchObject({ through_entry_no: 600, is_broken: 0 });
    expect(new Set(await indexStatements(() => found("needle")))).toEqual(new Set(["SELECT"]));
    expect(await found("needle")).toEqual(needles(600));
  });

  for (const [what, damage] of damages.filter(([one]) => !/config|format/.test(one)))
    test(`is made anew as the migrations make it, with everything in it: ${what}`, async () => {
      await saying(600);
      const schema = (): unknown =>
        onFile((database) =>
          database.prepare("SELECT name, sql FROM sqlite_schema WHERE name GLOB 'entry_gram*' ORDER BY name").all(),
        );
      const before = schema();
      await found("needle");
      await store.close();
      onFile((database) => database.exec(damage));
      await rebuildSearchIndex(path, { host });
      expect(schema()).toEqual(before);
      store = await openSqliteStore(path, { host });
      expect(await found("needle")).toEqual(needles(600));
      expect(indexRow()).toMatchObject({ through_entry_no: 600, is_broken: 0 });
      expect(onFile((database) => database.pragma("integrity_check", { simple: true }))).toBe("ok");
    });

  test("that cannot be removed from the file is said to be so, and hinders nothing", async () => {
    await saying(600);
    await store.close();
    onFile((database) => database.exec("DROP TABLE entry_gram_config"));
    await expect(rebuildSearchIndex(path, { host })).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      message: expect.stringContaining("searches find everything without it"),
    });
    store = await openSqliteStore(path, { host });
    expect(await found("needle")).toEqual(needles(600));
  });
});
