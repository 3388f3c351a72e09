import { renameSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { describe, expect, test, vi } from "vitest";
import { FileIdentity } from "../src/file-identity.ts";
import { destroyTable } from "./damaged-file.ts";
import { checksums } from "./file-state.ts";
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
  const replacements: readonly [string, (path: string, other: string) => void][] = [
    ["another file is moved over it", (path, other) => renameSync(other, path)],
    ["it is deleted", (path) => unlinkSync(path)],
    ["its WAL is deleted", (path) => unlinkSync(`${path}-wal`)],
  ];
  for (const [title, replace] of replacements) {
    test(`and ${title}, the next write is refused, and neither file changes`, async () => {
      const path = await madeStore("state.db", "first");
      const other = await madeStore("other.db", "other");
      const store = await openSqliteStore(path, { host });
      const { grant, turnId } = await turnOf(store, "a");
      replace(path, other);
      const before = checksums(path);
      const append = () => store.transcript.append({ grant, turnId, entries: [says("key")] });
      await expect(append()).rejects.toMatchObject({ code: "STORE_REPLACED", message: expect.stringContaining(path) });
      await expect(append()).rejects.toMatchObject({ code: "STORE_REPLACED" });
      await expect(store.leases.renew(grant, 1)).rejects.toMatchObject({ code: "STORE_REPLACED" });
      await store.close();
      expect(checksums(path)).toBe(before);
    });
  }

  test("STORE-1: a write that was committed while the file was replaced is not acknowledged", async () => {
    const path = await madeStore("state.db");
    const store = await openSqliteStore(path, { host });
    const { grant, turnId } = await turnOf(store, "a");
    // Intact before the write, and no more when it is to be acknowledged.
    vi.spyOn(FileIdentity.prototype, "isIntact").mockReturnValueOnce(true).mockReturnValueOnce(false);
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
    const intact = vi.spyOn(FileIdentity.prototype, "isIntact").mockReturnValue(true);
    renameSync(other, path);
    unlinkSync(`${path}-wal`);
    const answer = await store.transcript.append({ grant, turnId, entries: [says("acknowledged")] });
    expect(answer.kind).toBe("committed");
    intact.mockRestore();
    await store.close();

    const again = await openSqliteStore(path, { host });
    expect(await keysOf(again)).toEqual([]);
    await again.close();
  });
});
