import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { describe, expect, test, vi } from "vitest";
import { StoreGuard } from "../src/store-guard.ts";
import { destroyTable } from "./damaged-file.ts";
import { checksums, hasLockTable, lockCount } from "./file-state.ts";
import { grantTo, keysOf, says, turnOf } from "./scene.ts";
import { startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;

async function madeStore(name: string, key?: string): Promise<string> {
  const path = join(folder(), name);
  const store = await openSqliteStore(path, { host });
  if (key !== undefined) {
    const { grant, turnId } = await turnOf(store, "maker");
    await store.transcript.append({ grant, turnId, entries: [says(key)] });
    await store.turns.end({ grant, turnId, outcome: "answered", release: true });
  }
  await store.close();
  return path;
}

/** Writes so much that the file grows, which its header counts, and checkpoints at the end. */
async function grownStore(path: string): Promise<void> {
  const store = await openSqliteStore(path, { host });
  const { grant, turnId } = await turnOf(store, "grower");
  for (const key of ["1", "2", "3"])
    await store.transcript.append({ grant, turnId, entries: [says(key, key.repeat(20_000))] });
  await store.turns.end({ grant, turnId, outcome: "answered", release: true });
  await store.close();
}

/** By another process: in this one it would cancel SQLite's locks, which is a fault of its own. */
function byAnother(command: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr}`);
}

const copyByAnother = (from: string, to: string): void => byAnother("cp", from, to);

const cutByAnother = (path: string, size: number): void => byAnother("truncate", "-s", `${size}`, path);

/** Lets a process meet the damage and end; answers the checksums after the damage was met, and after the end. */
async function endOfProcess(path: string, guard: string): Promise<{ before: string; after: string; code: unknown }> {
  const child = startProcess("damaged-store", [path, guard]);
  let before = "";
  let code: unknown;
  for await (const line of child.lines) {
    code = line["code"];
    before = checksums(path);
    child.endInput();
  }
  expect(await child.ended).toMatchObject({ code: 0, stderr: "" });
  return { before, after: checksums(path), code };
}

describe("after structural damage", () => {
  test("STORE-1: the handle never writes again: not by a call, not at close, not by opening the file again", async () => {
    const path = await madeStore("state.db");
    destroyTable(path, "entry");
    const store = await openSqliteStore(path, { host });
    const { grant, turnId } = await turnOf(store, "a");
    const append = () => store.transcript.append({ grant, turnId, entries: [says("key")] });
    await expect(append()).rejects.toMatchObject({ code: "STORE_CORRUPT", message: expect.stringContaining(path) });
    const sealed = checksums(path);

    await expect(append()).rejects.toMatchObject({ code: "STORE_CORRUPT", message: expect.stringMatching(/sealed/) });
    await expect(store.leases.renew(grant, 60_000)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await expect(store.leases.read("session-1")).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await expect(openSqliteStore(path, { host })).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await store.close();
    await expect(openSqliteStore(path, { host })).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(checksums(path)).toBe(sealed);
  });

  test("STORE-1: the end of its process does not write either", async () => {
    const path = await madeStore("state.db");
    destroyTable(path, "entry");
    const { before, after, code } = await endOfProcess(path, "guarded");
    expect(code).toBe("STORE_CORRUPT");
    expect(after).toBe(before);
  });

  test("STORE-1 control: without the seal the end of the process checkpoints into the damaged file", async () => {
    const path = await madeStore("state.db");
    destroyTable(path, "entry");
    const { before, after, code } = await endOfProcess(path, "unguarded");
    expect(code).toBe("SQLITE_CORRUPT");
    expect(after).not.toBe(before);
  });

  test("a check finds files that were moved away, or replaced, before any write does, and the handle is sealed by it", async () => {
    for (const isReplaced of [false, true]) {
      const path = await madeStore(`${isReplaced}.db`);
      const other = await madeStore(`${isReplaced}-other.db`);
      const store = await openSqliteStore(path, { host });
      await store.check();
      byAnother("mv", path, `${path}.moved`);
      if (isReplaced) byAnother("mv", other, path);
      const code = isReplaced ? "STORE_REPLACED" : "STORE_DELETED";
      await expect(store.check()).rejects.toMatchObject({ code });
      await expect(store.sessions.list()).rejects.toMatchObject({ code, message: expect.stringMatching(/sealed/) });
      await expect(store.check()).rejects.toMatchObject({ code });
      await store.close();
    }
  });

  test("a damaged read seals the handle too", async () => {
    const path = await madeStore("state.db", "key");
    destroyTable(path, "entry");
    const store = await openSqliteStore(path, { host });
    await expect(store.transcript.load("session-1")).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await expect(grantTo(store, "a")).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await store.close();
  });
});

describe("when the file is replaced while it is open", () => {
  interface Change {
    readonly title: string;
    readonly code: string;
    /** Given the open store's path, another store, and a copy of the open one as it was some writes ago. */
    readonly act: (path: string, files: { readonly other: string; readonly backup: string }) => void;
    /** Whether a write under NORMAL, which looks at the files' identity alone, may still go through. */
    readonly isDeep?: true;
    /** Whether what was deleted is there again once it was noticed. */
    readonly isPutBack?: true;
  }
  const changes: readonly Change[] = [
    {
      title: "another file is moved over it",
      code: "STORE_REPLACED",
      act: (path, { other }) => renameSync(other, path),
    },
    {
      title: "another store is copied over it",
      code: "STORE_REPLACED",
      act: (path, { other }) => copyByAnother(other, path),
      isDeep: true,
    },
    {
      title: "an older copy of its own is copied over it",
      code: "STORE_REPLACED",
      act: (path, { backup }) => copyByAnother(backup, path),
    },
    { title: "it is deleted", code: "STORE_DELETED", act: (path) => unlinkSync(path) },
    { title: "its WAL is deleted", code: "STORE_DELETED", act: (path) => unlinkSync(`${path}-wal`), isPutBack: true },
    {
      title: "its WAL is deleted and made anew",
      code: "STORE_DELETED",
      act: (path) => {
        renameSync(`${path}-wal`, `${path}-gone`);
        writeFileSync(`${path}-wal`, "");
      },
    },
    {
      title: "its shared memory is deleted",
      code: "STORE_DELETED",
      act: (path) => unlinkSync(`${path}-shm`),
      isDeep: true,
    },
    { title: "it is cut short", code: "STORE_TRUNCATED", act: (path) => cutByAnother(path, 4096) },
    {
      title: "its WAL is cut short",
      code: "STORE_TRUNCATED",
      act: (path) => cutByAnother(`${path}-wal`, 0),
      isDeep: true,
    },
  ];
  for (const { title, code, act, isDeep, isPutBack } of changes) {
    test(`and ${title}, the next append is refused with ${code}, and no file changes any more`, async () => {
      const path = await madeStore("state.db", "first");
      const other = await madeStore("other.db", "other");
      const backup = join(folder(), "backup.db");
      copyFileSync(path, backup);
      await grownStore(path);
      await grownStore(other);
      const store = await openSqliteStore(path, { host });
      const { grant, turnId } = await turnOf(store, "a");
      const whole = checksums(path);
      act(path, { other, backup });
      // A log that is unlinked is put back as it was; nothing else is touched.
      const before = isPutBack ? whole : checksums(path);
      const append = () => store.transcript.append({ grant, turnId, entries: [says("key")] });
      if (isDeep !== true) await expect(store.leases.renew(grant, 60_000)).rejects.toMatchObject({ code });
      await expect(append()).rejects.toMatchObject({ code, message: expect.stringContaining(path) });
      await expect(append()).rejects.toMatchObject({ code, message: expect.stringMatching(/is sealed/) });
      await expect(store.leases.renew(grant, 1)).rejects.toMatchObject({ code });
      await store.close();
      expect(checksums(path)).toBe(before);
    });
  }

  // Only Linux tells which locks a process holds.
  test.skipIf(!hasLockTable)(
    "and something in the process reads it, which cancels SQLite's locks, the next append is refused, and no file changes",
    async () => {
      const path = await madeStore("state.db", "first");
      for (const end of ["", "-shm"]) {
        const copy = await madeStore(`copy${end}.db`, "first");
        const store = await openSqliteStore(copy, { host });
        const { grant, turnId } = await turnOf(store, "a");
        readFileSync(`${copy}${end}`);
        const before = checksums(copy);
        await expect(store.transcript.append({ grant, turnId, entries: [says("key")] })).rejects.toMatchObject({
          code: "STORE_UNLOCKED",
          message: expect.stringContaining("Restart the process"),
        });
        await store.close();
        expect(checksums(copy)).toBe(before);
      }
      expect(lockCount(path)).toBe(0);
    },
  );

  // Only Linux tells which locks a process holds.
  test.skipIf(!hasLockTable)(
    "and something in the process reads its WAL or asks for its size, nothing happens: that cancels no lock",
    async () => {
      const path = await madeStore("state.db", "first");
      const store = await openSqliteStore(path, { host });
      const { grant, turnId } = await turnOf(store, "a");
      readFileSync(`${path}-wal`);
      statSync(path);
      expect(await store.transcript.append({ grant, turnId, entries: [says("key")] })).toMatchObject({
        kind: "committed",
      });
      await store.close();
    },
  );

  test("and its WAL is reset and cut by a checkpoint, nothing happens: that is SQLite's own doing", async () => {
    const path = await madeStore("state.db", "first");
    const store = await openSqliteStore(path, { host });
    const { grant, turnId } = await turnOf(store, "a");
    const neighbour = new Database(path);
    expect(neighbour.pragma("wal_checkpoint(TRUNCATE)")).toMatchObject([{ busy: 0 }]);
    neighbour.close();
    expect(statSync(`${path}-wal`).size).toBe(0);
    expect(await store.transcript.append({ grant, turnId, entries: [says("key")] })).toMatchObject({
      kind: "committed",
    });
    await store.close();
  });

  test("STORE-1: a write that was committed while the file was replaced is not acknowledged", async () => {
    const path = await madeStore("state.db");
    const store = await openSqliteStore(path, { host });
    const { grant, turnId } = await turnOf(store, "a");
    // Intact before the write, and no more when it is to be acknowledged.
    vi.spyOn(StoreGuard.prototype, "inspect").mockReturnValueOnce(undefined);
    vi.spyOn(StoreGuard.prototype, "look").mockReturnValueOnce("replaced");
    await expect(store.transcript.append({ grant, turnId, entries: [says("key")] })).rejects.toMatchObject({
      code: "STORE_REPLACED",
      context: { isIndeterminate: true },
    });
    await store.close();
  });

  test("STORE-2: a replaced file retires its database without harming its holders, and a new one serves the new file", async () => {
    const path = await madeStore("state.db", "old");
    const other = await madeStore("other.db", "new");
    const old = await openSqliteStore(path, { host });
    const oldTurn = await turnOf(old, "a");
    for (const end of ["", "-wal", "-shm"]) renameSync(`${path}${end}`, join(folder(), `old.db${end}`));
    renameSync(other, path);

    const store = await openSqliteStore(path, { host });
    expect(await keysOf(store)).toEqual(["new"]);
    const { grant, turnId } = await turnOf(store, "b");
    await expect(old.transcript.append({ ...oldTurn, entries: [says("late")] })).rejects.toMatchObject({
      code: "STORE_REPLACED",
    });
    await old.close();
    await store.transcript.append({ grant, turnId, entries: [says("later")] });
    await store.close();

    const again = await openSqliteStore(path, { host });
    expect(await keysOf(again)).toEqual(["new", "later"]);
    await again.close();
  });

  test("a new file beside the WAL of the old one is refused, and stays as it is", async () => {
    const path = await madeStore("state.db", "old");
    const other = await madeStore("other.db", "new");
    const old = await openSqliteStore(path, { host });
    await turnOf(old, "a");
    renameSync(other, path);
    // This process knows whose it is also where that could not be noted, on a full disk for one.
    rmSync(`${path}-mark`);
    const before = checksums(path);
    await expect(openSqliteStore(path, { host })).rejects.toMatchObject({
      code: "STORE_REPLACED",
      message: expect.stringContaining(`${path}-wal still belongs to the old one`),
    });
    await old.close();
    expect(checksums(path)).toBe(before);
  });

  test("STORE-1 control: without a look at the files an append is acknowledged that the file never gets", async () => {
    const path = await madeStore("state.db");
    const other = await madeStore("other.db");
    const store = await openSqliteStore(path, { host });
    const { grant, turnId } = await turnOf(store, "a");
    vi.spyOn(StoreGuard.prototype, "look").mockReturnValue(undefined);
    vi.spyOn(StoreGuard.prototype, "inspect").mockReturnValue(undefined);
    renameSync(other, path);
    unlinkSync(`${path}-wal`);
    const answer = await store.transcript.append({ grant, turnId, entries: [says("acknowledged")] });
    expect(answer.kind).toBe("committed");
    vi.restoreAllMocks();
    await store.close();

    const again = await openSqliteStore(path, { host });
    expect(await keysOf(again)).toEqual([]);
    await again.close();
  });
});
