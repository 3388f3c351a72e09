import { copyFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { closeAllStores, openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { describe, expect, test, vi } from "vitest";
import { acquireDatabase } from "../src/registry.ts";
import { hasLockTable, lockCount } from "./file-state.ts";
import { grantTo, keysOf, says, turnOf } from "./scene.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;
const pathOf = (name = "state.db"): string => join(folder(), name);

/** Opens and closes the file once more while `act` looks on: what a second part of the program would do. */
async function openedTwice(reopen: (path: string) => Promise<{ close(): Promise<void> }>): Promise<{
  readonly before: number;
  readonly after: number;
}> {
  const store = await openSqliteStore(pathOf(), { host });
  await grantTo(store, "a");
  const before = lockCount(pathOf());
  await (await reopen(pathOf())).close();
  const after = lockCount(pathOf());
  await store.close();
  return { before, after };
}

describe("handles on one file", () => {
  // Only Linux tells which locks a process holds.
  test.skipIf(!hasLockTable)(
    "STORE-2: share one writer, so that closing one leaves the locks of the file as they are",
    async () => {
      const { before, after } = await openedTwice(async (path) => {
        symlinkSync(path, pathOf("link.db"));
        return openSqliteStore(pathOf("link.db"), { host });
      });
      expect(before).toBeGreaterThan(0);
      expect(after).toBe(before);
    },
  );

  // Only Linux tells which locks a process holds.
  test.skipIf(!hasLockTable)(
    "STORE-2 control: without one writer per file the close of a second one drops the locks of the first",
    async () => {
      const library = createRequire(import.meta.url).resolve("better-sqlite3/build/Release/better_sqlite3.node");
      const secondLibrary = pathOf("second.node");
      copyFileSync(library, secondLibrary);
      const { before, after } = await openedTwice(async (path) => {
        const second = new Database(path, { nativeBinding: secondLibrary });
        second.prepare("SELECT count(*) FROM session").get();
        return { close: async () => void second.close() };
      });
      expect(before).toBeGreaterThan(0);
      expect(after).toBe(0);
    },
  );

  test("see each other's writes, and the close of one harms no other", async () => {
    const first = await openSqliteStore(pathOf(), { host });
    const second = await openSqliteStore(pathOf(), { host });
    const { grant, turnId } = await turnOf(first, "a");
    await first.transcript.append({ grant, turnId, entries: [says("one")] });
    await first.close();
    await first.close();
    await second.transcript.append({ grant, turnId, entries: [says("two")] });
    expect(await keysOf(second)).toEqual(["one", "two"]);
    await second.close();
  });

  test("that are opened at the same time get the same database, or the same error", async () => {
    const stores = await Promise.all([1, 2, 3].map(() => openSqliteStore(pathOf(), { host })));
    const grant = await grantTo(stores[0] as StateStore, "a");
    expect(await stores[2]?.leases.renew(grant, 60_000)).toEqual({ kind: "renewed" });
    await Promise.all(stores.map((store) => store.close()));

    writeFileSync(pathOf("garbage.db"), "This is no database, and long enough to be seen as none. ".repeat(20));
    const opened = await Promise.allSettled([1, 2, 3].map(() => openSqliteStore(pathOf("garbage.db"), { host })));
    for (const result of opened)
      expect(result).toMatchObject({ status: "rejected", reason: { code: "STORE_CORRUPT" } });
  });

  test("are all closed at once at the end of a program, and calls that wait for a lock are let finish", async () => {
    const [first, second] = [await openSqliteStore(pathOf(), { host }), await openSqliteStore(pathOf(), { host })];
    const third = await openSqliteStore(pathOf("other.db"), { host });
    const { grant, turnId } = await turnOf(first, "a");
    const append = first.transcript.append({ grant, turnId, entries: [says("one")] });
    await third.close();
    expect(await closeAllStores()).toBe(2);
    expect(await append).toMatchObject({ kind: "committed" });
    await expect(second.leases.read("session-1")).rejects.toMatchObject({ code: "STORE_CLOSED" });
    if (hasLockTable) expect(lockCount(pathOf())).toBe(0);
    expect(await closeAllStores()).toBe(0);
    const again = await openSqliteStore(pathOf(), { host });
    expect(await keysOf(again)).toEqual(["one"]);
    await again.close();
  });

  test("rule 7.9: refuse every call once they are closed, and do not reopen", async () => {
    const store = await openSqliteStore(pathOf(), { host });
    await store.close();
    await expect(store.leases.read("session-1")).rejects.toMatchObject({ code: "STORE_CLOSED" });
    await expect(grantTo(store, "a")).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });
});

test("rule 7.9: a second copy of the package is refused a file that the first has open, and gets it afterwards", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  vi.resetModules();
  const copy = await import("../src/open-store.ts");
  await expect(copy.openSqliteStore(pathOf(), { host })).rejects.toMatchObject({
    code: "STORE_DUPLICATE",
    message: expect.stringContaining(pathOf()),
  });
  await store.close();
  await (await copy.openSqliteStore(pathOf(), { host })).close();
  await (await openSqliteStore(pathOf(), { host })).close();
});

test("an opening that failed leaves nothing: the file can be mended and opened", async () => {
  writeFileSync(pathOf(), "no database ".repeat(100));
  await expect(openSqliteStore(pathOf(), { host })).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  if (hasLockTable) expect(lockCount(pathOf())).toBe(0);
  unlinkSync(pathOf());
  const store = await openSqliteStore(pathOf(), { host });
  await grantTo(store, "a");
  await store.close();
  // A clean end leaves the one file alone.
  renameSync(pathOf(), pathOf("moved.db"));
  rmSync(pathOf("moved.db"));
});

test("and so can a file that is still the same: whoever asks next opens it, and is not told the old error", async () => {
  await (await openSqliteStore(pathOf(), { host })).close();
  const failing = acquireDatabase(pathOf(), () => Promise.reject(new Error("not now")));
  await expect(failing).rejects.toThrow("not now");
  const store = await openSqliteStore(pathOf(), { host });
  await grantTo(store, "a");
  await store.close();
});

test("STORE-2: given back twice a database still belongs to its other holders", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const holding = await acquireDatabase(pathOf(), () => Promise.reject(new Error("It is open.")));
  holding.release();
  holding.release();
  await grantTo(store, "a");
  expect((await store.leases.read("session-1"))?.fencingToken).toBe(1);
  await store.close();
});
