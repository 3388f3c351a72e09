import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { describe, expect, test } from "vitest";
import { keysOf, runnerOf, says, turnOf } from "./scene.ts";
import { SmallDisk } from "./small-disk.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;
const isRoot = process.getuid?.() === 0;

/** A store with one acknowledged entry, closed. */
async function madeStore(path: string): Promise<void> {
  const store = await openSqliteStore(path, { host });
  const { grant, turnId } = await turnOf(store, "maker");
  await store.transcript.append({ grant, turnId, entries: [says("first")] });
  await store.turns.end({ grant, turnId, outcome: "answered", release: true });
  await store.close();
}

// Only root may mount a file system.
describe.skipIf(!isRoot)("opening a store", () => {
  test("on a file system that is mounted read-only is refused, and changes nothing", async (context) => {
    const disk = SmallDisk.mount(folder());
    // A container's root may not mount either.
    if (!disk) return context.skip("mount is not permitted here");
    try {
      const path = join(disk.folder, "state.db");
      await madeStore(path);
      const before = readFileSync(path);
      const namesBefore = readdirSync(disk.folder);
      disk.remount("ro");
      for (const wanted of [path, join(disk.folder, "new.db"), join(disk.folder, "deeper", "new.db")])
        await expect(openSqliteStore(wanted, { host })).rejects.toMatchObject({
          code: "STORE_READONLY",
          message: expect.stringContaining(wanted),
        });
      expect(readdirSync(disk.folder)).toEqual(namesBefore);
      expect(readFileSync(path).equals(before)).toBe(true);
      disk.remount("rw");
      const store = await openSqliteStore(path, { host });
      expect(await keysOf(store)).toEqual(["first"]);
      await store.close();
    } finally {
      disk.unmount();
    }
  });

  test("on a full disk goes well, again and again, and writing and a new store are refused with what to do", async (context) => {
    const disk = SmallDisk.mount(folder(), "4m");
    // A container's root may not mount either.
    if (!disk) return context.skip("mount is not permitted here");
    try {
      const path = join(disk.folder, "state.db");
      await madeStore(path);
      const reserve = join(disk.folder, "state.db-reserve");
      const reservedBytes = statSync(reserve).size;
      disk.fill();
      for (let count = 0; count < 20; count++) {
        const store = await openSqliteStore(path, { host });
        expect(await keysOf(store)).toEqual(["first"]);
        if (count === 0) {
          expect(store.file.notes).toEqual([expect.stringContaining("no room for the reserve")]);
          const large = { sessionId: "s", inputId: "i", text: "x".repeat(200_000), onBusy: "queue" } as const;
          await expect(store.inbox.offer({ ...large, runner: runnerOf("a") })).rejects.toMatchObject({
            code: "STORE_FULL",
          });
        }
        await store.close();
        expect(statSync(reserve).size).toBe(reservedBytes);
      }
      await expect(openSqliteStore(join(disk.folder, "new.db"), { host })).rejects.toMatchObject({
        code: "STORE_FULL",
        message: expect.stringMatching(/Could not open.*Free some space/),
      });
      disk.empty();
      const store = await openSqliteStore(path, { host });
      expect(await keysOf(store)).toEqual(["first"]);
      const { grant, turnId } = await turnOf(store, "a");
      expect(await store.transcript.append({ grant, turnId, entries: [says("second")] })).toMatchObject({
        kind: "committed",
      });
      await store.close();
      await (await openSqliteStore(join(disk.folder, "new.db"), { host })).close();
    } finally {
      disk.unmount();
    }
  });
});
