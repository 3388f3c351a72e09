import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";
import { describe, expect, test, vi } from "vitest";
import { Connection } from "../src/connection.ts";
import { explain, isBusy, isFinal } from "../src/store-failure.ts";
import type { Phase } from "../src/store-failure.ts";
import { keysOf, says, turnOf } from "./scene.ts";
import { SmallDisk } from "./small-disk.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;
const pathOf = (): string => join(folder(), "state.db");

function systemError(code: string): Error {
  return Object.assign(new Error(`it failed with ${code}`), { code });
}

describe("what SQLite and the file system report", () => {
  const codes: readonly (readonly [string, string])[] = [
    ["SQLITE_CORRUPT", "STORE_CORRUPT"],
    ["SQLITE_CORRUPT_INDEX", "STORE_CORRUPT"],
    ["SQLITE_NOTADB", "STORE_CORRUPT"],
    ["SQLITE_READONLY", "STORE_READONLY"],
    ["SQLITE_READONLY_DBMOVED", "STORE_REPLACED"],
    ["SQLITE_FULL", "STORE_FULL"],
    ["SQLITE_IOERR_SHMSIZE", "STORE_FULL"],
    ["SQLITE_IOERR_WRITE", "STORE_IO"],
    ["SQLITE_IOERR_FSYNC", "STORE_IO"],
    ["SQLITE_NOMEM", "STORE_IO"],
    ["SQLITE_CANTOPEN", "STORE_UNAVAILABLE"],
    ["SQLITE_PERM", "STORE_UNAVAILABLE"],
    ["SQLITE_CONSTRAINT_UNIQUE", "STORE_CONTRACT"],
    ["EROFS", "STORE_READONLY"],
    ["EACCES", "STORE_READONLY"],
    ["ENOSPC", "STORE_FULL"],
    ["EDQUOT", "STORE_FULL"],
    ["EIO", "STORE_IO"],
    ["ENOTDIR", "STORE_UNAVAILABLE"],
    ["EMFILE", "STORE_UNAVAILABLE"],
  ];
  for (const [code, told] of codes) {
    test(`${code} is told as ${told}, with what was attempted, on what, and what to do`, () => {
      const error = explain(systemError(code), { attempt: "append to session s1", path: pathOf(), phase: "body" });
      expect(error).toMatchObject({ code: told, context: { systemCode: code, isIndeterminate: false } });
      expect(String(error)).toContain(`Could not append to session s1 in the store ${pathOf()}: `);
      expect(String(error)).toMatch(/Nothing was written\. [A-Z].*\.$/);
      expect(CodedError.is(error)).toBe(true);
    });
  }

  test("leaves open whether a write happened when the commit failed, save on a full disk, which rolls back", () => {
    const at = (code: string, phase: Phase): unknown => explain(systemError(code), { attempt: "a", path: "p", phase });
    expect(at("SQLITE_IOERR_WRITE", "commit")).toMatchObject({
      context: { isIndeterminate: true },
      message: expect.stringMatching(/unknown: read back, or repeat/),
    });
    expect(at("SQLITE_FULL", "commit")).toMatchObject({
      context: { isIndeterminate: false },
      message: expect.stringMatching(/Nothing was written/),
    });
  });

  test("is retried when it is a lock, and final when the file cannot be trusted any more", () => {
    const all = [
      ...codes.map(([code]) => code),
      "SQLITE_BUSY",
      "SQLITE_BUSY_SNAPSHOT",
      "SQLITE_LOCKED",
      "SQLITE_PROTOCOL",
    ];
    expect(all.filter((code) => isBusy(systemError(code)))).toEqual([
      "SQLITE_BUSY",
      "SQLITE_BUSY_SNAPSHOT",
      "SQLITE_LOCKED",
      "SQLITE_PROTOCOL",
    ]);
    expect(all.filter((code) => isFinal(systemError(code)))).toEqual([
      "SQLITE_CORRUPT",
      "SQLITE_CORRUPT_INDEX",
      "SQLITE_NOTADB",
      "SQLITE_READONLY_DBMOVED",
      "SQLITE_IOERR_FSYNC",
    ]);
  });

  test("a fault of this package passes as it is", () => {
    const fault = new TypeError("undefined is not a function");
    expect(explain(fault, { attempt: "a", path: "p", phase: "body" })).toBe(fault);
  });
});

test("an append whose commit failed may be repeated: it is there once", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  const append = () => store.transcript.append({ grant, turnId, entries: [says("key")] });
  const commit = vi.spyOn(Connection.prototype, "commit");
  // The commit succeeds, and is reported as failed: the worst of both.
  commit.mockImplementationOnce(function (this: Connection) {
    this.execute("COMMIT");
    throw systemError("SQLITE_IOERR_WRITE");
  });
  await expect(append()).rejects.toMatchObject({ code: "STORE_IO", context: { isIndeterminate: true } });
  expect(await append()).toMatchObject({ kind: "committed" });
  expect(await keysOf(store)).toEqual(["key"]);
  await store.close();
});

test("an I/O error of the beginning alone is tried once more, since nothing had begun", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  const append = (key: string) => store.transcript.append({ grant, turnId, entries: [says(key)] });
  const real = Connection.prototype.run;
  const failing = (times: number): void => {
    let count = 0;
    vi.spyOn(Connection.prototype, "run").mockImplementation(function (this: Connection, sql, ...values) {
      if (sql === "BEGIN IMMEDIATE" && count++ < times) throw systemError("SQLITE_IOERR_LOCK");
      return real.call(this, sql, ...values);
    });
  };
  failing(1);
  expect(await append("one")).toMatchObject({ kind: "committed" });
  vi.restoreAllMocks();
  failing(2);
  await expect(append("two")).rejects.toMatchObject({ code: "STORE_IO", context: { isIndeterminate: false } });
  vi.restoreAllMocks();
  expect(await keysOf(store)).toEqual(["one"]);
  await store.close();
});

test("a failed sync seals the store: a later one could succeed without having brought the lost pages to the disk", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  const append = () => store.transcript.append({ grant, turnId, entries: [says("key")] });
  vi.spyOn(Connection.prototype, "commit").mockImplementationOnce(() => {
    throw systemError("SQLITE_IOERR_FSYNC");
  });
  await expect(append()).rejects.toMatchObject({ code: "STORE_IO", context: { isIndeterminate: true } });
  await expect(append()).rejects.toMatchObject({ code: "STORE_IO", message: expect.stringMatching(/is sealed/) });
  await store.close();
});

test("STORE-1: a connection that cannot even roll back is used no more", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  const append = () => store.transcript.append({ grant, turnId, entries: [says("key")] });
  vi.spyOn(Connection.prototype, "commit").mockImplementationOnce(() => {
    throw systemError("SQLITE_IOERR_WRITE");
  });
  vi.spyOn(Connection.prototype, "rollback").mockImplementationOnce(() => {
    throw systemError("SQLITE_IOERR_WRITE");
  });
  await expect(append()).rejects.toMatchObject({ code: "STORE_IO" });
  await expect(append()).rejects.toMatchObject({ code: "STORE_IO", message: expect.stringMatching(/is sealed/) });
  await store.close();
});

/** Appends until the log would have been checkpointed twice over. */
async function appendMuch(store: SqliteStore): Promise<void> {
  const { grant, turnId } = await turnOf(store, "a");
  for (let index = 0; index < 160; index++)
    await store.transcript.append({ grant, turnId, entries: [says(`key-${index}`, "x".repeat(60_000))] });
}

test("a long log is checkpointed behind the answers, by the store itself, and begins anew", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const checkpoint = vi.spyOn(Connection.prototype, "checkpoint");
  await appendMuch(store);
  expect(checkpoint.mock.calls.length).toBeGreaterThan(1);
  // What it began with at the last of them is noted, so that an older copy in its place is told apart from it.
  const mark = JSON.parse(readFileSync(`${pathOf()}-mark`, "utf8")) as { header: { changeCounter: number } };
  expect(mark.header.changeCounter).toBeGreaterThan(1);
  // 160 appends of 15 pages and more; the log was begun anew in between.
  expect(statSync(`${pathOf()}-wal`).size).toBeLessThan(160 * 15 * 4096);
  await store.close();
  const connection = new Connection(pathOf(), "write");
  expect(connection.pragma("wal_autocheckpoint")).toBe(0);
  connection.close();
});

test("a checkpoint whose sync fails seals the store: what was lost in the log may lie before later rows", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  vi.spyOn(Connection.prototype, "checkpoint").mockImplementation(() => {
    throw systemError("SQLITE_IOERR_FSYNC");
  });
  await expect(appendMuch(store)).rejects.toMatchObject({
    code: "STORE_IO",
    context: { isIndeterminate: false },
    message: expect.stringMatching(/is sealed/),
  });
  await store.close();
});

test("a checkpoint that somebody else's lock refuses is tried again later", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const checkpoint = vi.spyOn(Connection.prototype, "checkpoint").mockImplementationOnce(() => {
    throw systemError("SQLITE_BUSY");
  });
  await appendMuch(store);
  expect(checkpoint.mock.calls.length).toBeGreaterThan(1);
  await store.close();
});

// Only root may mount a file system that is small enough to be filled.
test.skipIf(process.getuid?.() !== 0)(
  "a full disk refuses the write and loses nothing; with space again the store goes on",
  async (context) => {
    const disk = SmallDisk.mount(folder());
    // A container's root may not mount either.
    if (!disk) return context.skip("mount is not permitted here");
    try {
      const store = await openSqliteStore(join(disk.folder, "state.db"), { host });
      const { grant, turnId } = await turnOf(store, "a");
      const append = (key: string) =>
        store.transcript.append({ grant, turnId, entries: [says(key, "x".repeat(10_000))] });
      await append("first");
      disk.fill(440_000);
      const stored: string[] = ["first"];
      const filling = async (): Promise<void> => {
        for (let index = 0; ; index++) {
          await append(`key-${index}`);
          stored.push(`key-${index}`);
        }
      };
      await expect(filling()).rejects.toMatchObject({ code: "STORE_FULL", context: { isIndeterminate: false } });
      expect(await keysOf(store)).toEqual(stored);
      disk.empty();
      expect(await append("last")).toMatchObject({ kind: "committed" });
      expect(await keysOf(store)).toEqual([...stored, "last"]);
      await store.close();
    } finally {
      disk.unmount();
    }
  },
);
