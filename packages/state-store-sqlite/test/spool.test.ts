import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { SpoolStep, StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { describe, expect, test, vi } from "vitest";
import { Connection } from "../src/connection.ts";
import { grantOfTurn, grantTo, keysOf, says, turnOf } from "./scene.ts";
import { startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;
const pathOf = (): string => join(folder(), "state.db");
const spoolOf = (path: string): string => `${path}-spool`;
const fileOf = (path: string): string => join(spoolOf(path), "session-1.jsonl");
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

function step(...keys: readonly string[]): SpoolStep {
  return { ...grantOfTurn("a", 1), entries: keys.map((key) => says(key)) };
}

/** A store on which `a` runs turn `turn-a`, closed again. */
async function runningStore(path: string): Promise<void> {
  const store = await openSqliteStore(path, { host });
  await turnOf(store, "a");
  await store.close();
}

/** What the next grant finds: `b` names the grant of `a` as dead. */
async function nextGrant(store: StateStore): Promise<void> {
  const { grant } = grantOfTurn("a", 1);
  const holder = { instanceId: "i", host: "h", bootId: "b", pid: 1, holderId: "holder-b" };
  const answer = await store.leases.acquire({ sessionId: "session-1", holder, ttlMs: 60_000, reclaim: grant });
  expect(answer.kind).toBe("granted");
}

describe("the spool of a store", () => {
  test("is one line a step in a file beside the database that only its owner can read, and goes when it is empty", async () => {
    const path = pathOf();
    await runningStore(path);
    const store = await openSqliteStore(path, { host });
    expect(await store.spool.keep(step("one"))).toEqual({ place: fileOf(path) });
    await store.spool.keep(step("two", "three"));
    expect(readFileSync(fileOf(path), "utf8")).toMatch(/^(\{"digest":"[0-9a-f]{64}","step":\{.*\}\}\n){2}$/);
    expect([modeOf(spoolOf(path)), modeOf(fileOf(path))]).toEqual(["700", "600"]);
    expect(await store.spool.waiting()).toEqual([
      { sessionId: "session-1", stepCount: 2, turnIds: ["turn-a"], damagedCount: 0, place: fileOf(path) },
    ]);
    await nextGrant(store);
    expect(await keysOf(store)).toEqual(["one", "two", "three"]);
    expect(existsSync(spoolOf(path))).toBe(false);
    await store.close();
    await expect(store.spool.keep(step("four"))).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });

  test("SPOOL-1: takes what a sealed store refuses, and gives it to the store that is at the path again", async () => {
    const path = pathOf();
    await runningStore(path);
    const sealed = await openSqliteStore(path, { host });
    const away = join(folder(), "away");
    mkdirSync(away);
    for (const end of ["", "-wal", "-shm"]) renameSync(`${path}${end}`, join(away, `state.db${end}`));
    const append = sealed.transcript.append({ ...step("one") });
    await expect(append).rejects.toMatchObject({ code: "STORE_DELETED" });
    await sealed.spool.keep(step("one"));
    await sealed.spool.keep({ ...step("two"), end: { outcome: "answered" } });
    await sealed.close();

    const restored = join(folder(), "restored.db");
    for (const end of ["", "-wal"]) cpSync(join(away, `state.db${end}`), `${restored}${end}`);
    renameSync(spoolOf(path), spoolOf(restored));
    const store = await openSqliteStore(restored, { host });
    await nextGrant(store);
    expect(await keysOf(store)).toEqual(["one", "two"]);
    expect(await store.turns.read("session-1", "turn-a")).toMatchObject({ state: "ended", outcome: "answered" });
    await store.close();
  });

  test("SPOOL-1: a crash between the commit and the removal of the file replays nothing twice", async () => {
    const path = pathOf();
    await runningStore(path);
    const store = await openSqliteStore(path, { host });
    await store.spool.keep(step("one", "two"));
    const copy = join(folder(), "copy");
    cpSync(spoolOf(path), copy, { recursive: true });
    await nextGrant(store);
    cpSync(copy, spoolOf(path), { recursive: true });
    await store.leases.release({ sessionId: "session-1", holderId: "holder-b", fencingToken: 2 });
    await grantTo(store, "c");
    expect(await keysOf(store)).toEqual(["one", "two"]);
    expect(existsSync(spoolOf(path))).toBe(false);
    await store.close();
  });

  test("SPOOL-1: steps that a process keeps while others replay are all there, once", { timeout: 60_000 }, async () => {
    const path = pathOf();
    const store = await openSqliteStore(path, { host });
    const { grant } = await turnOf(store, "a");
    await store.turns.settleForeign(grant);
    const count = 400;
    const writer = startProcess("spool-writer", [path, `${count}`]);
    let grantCount = 0;
    let isOver = false;
    void writer.ended.then(() => (isOver = true));
    for (let number = 0; !isOver; number++) {
      const again = await grantTo(store, `reader-${number}`);
      await store.leases.release(again);
      if (!existsSync(spoolOf(path))) grantCount++;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(await writer.ended).toMatchObject({ code: 0, stderr: "" });
    await grantTo(store, "last");
    expect(grantCount).toBeGreaterThan(5);
    expect(await keysOf(store)).toEqual(Array.from({ length: count }, (_, index) => `late-${index + 1}/late`));
    expect(await store.spool.waiting()).toEqual([]);
    await store.close();
  });
});

test("rule 7.8: a grant that brings steps back waits for the disk, since their file goes with it", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant } = await turnOf(store, "a");
  await store.turns.settleForeign(grant);
  await store.spool.keep(step("late"));
  const begin = vi.spyOn(Connection.prototype, "begin");
  await grantTo(store, "b");
  expect(begin.mock.calls.map(([durability]) => durability)).toEqual(["normal", "full"]);
  await store.close();
});

describe("a line that is torn or damaged", () => {
  test("is skipped and told, stays where it is, and takes nothing with it", async () => {
    const path = pathOf();
    await runningStore(path);
    const store = await openSqliteStore(path, { host });
    await store.spool.keep(step("one"));
    const flipped = readFileSync(fileOf(path), "utf8").replace("text of one", "text of two");
    appendFileSync(fileOf(path), flipped);
    appendFileSync(fileOf(path), flipped.slice(0, 100));
    await store.spool.keep(step("three"));
    expect(await store.spool.waiting()).toMatchObject([{ stepCount: 2, damagedCount: 1 }]);
    await nextGrant(store);
    expect(await keysOf(store)).toEqual(["one", "three"]);
    expect(await store.spool.waiting()).toMatchObject([{ stepCount: 0, damagedCount: 1 }]);
    await store.close();
  });

  test("that was cut short by a full disk and then written whole is no damage", async () => {
    const path = pathOf();
    await runningStore(path);
    const store = await openSqliteStore(path, { host });
    await store.spool.keep(step("one"));
    const line = readFileSync(fileOf(path), "utf8");
    writeFileSync(fileOf(path), `${line.slice(0, 120)}\n${line}`);
    expect(await store.spool.waiting()).toMatchObject([{ stepCount: 1, damagedCount: 0 }]);
    await nextGrant(store);
    expect(existsSync(spoolOf(path))).toBe(false);
    await store.close();
  });
});

describe("what is no spool of ours", () => {
  test("a link in the place of a file is not followed, and the grant is given all the same", async () => {
    const path = pathOf();
    await runningStore(path);
    mkdirSync(spoolOf(path));
    const target = join(folder(), "target");
    writeFileSync(target, "mine\n");
    symlinkSync(target, fileOf(path));
    const store = await openSqliteStore(path, { host });
    await expect(store.spool.keep(step("one"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(readFileSync(target, "utf8")).toBe("mine\n");
    await nextGrant(store);
    await store.close();
  });

  test("a session id that is no file name is refused", async () => {
    const store = await openSqliteStore(pathOf(), { host });
    const grant = { sessionId: "../up", holderId: "holder-a", fencingToken: 1 };
    await expect(store.spool.keep({ grant, turnId: "t", entries: [] })).rejects.toMatchObject({
      code: "STORE_CONTRACT",
    });
    await store.close();
  });

  test("a pipe in the place of a file is neither waited for nor written to", async () => {
    const path = pathOf();
    await runningStore(path);
    mkdirSync(spoolOf(path));
    spawnSync("mkfifo", [fileOf(path)]);
    const store = await openSqliteStore(path, { host });
    await expect(store.spool.keep(step("one"))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      context: { path: store.file.path },
    });
    await nextGrant(store);
    await store.close();
  });
});

/** A file system in memory of this size, unmounted and removed by the caller; absent without the right to mount. */
function smallDisk(at: string, size: string): boolean {
  mkdirSync(at);
  return spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", at]).status === 0;
}

const large = (key: string): SpoolStep => ({ ...step(), entries: [says(key, "x".repeat(150_000))] });

test("SPOOL-1: a disk that is full takes step after step into the reserve, and says what is in no place once that is used up", async (context) => {
  const disk = join(folder(), "disk");
  if (!smallDisk(disk, "6m")) return context.skip("mounting a small disk needs root");
  try {
    const path = join(disk, "state.db");
    await runningStore(path);
    const store = await openSqliteStore(path, { host });
    const filler = join(disk, "filler");
    const fill = (): void =>
      void spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4096", "oflag=append", "conv=notrunc"]);
    fill();
    await expect(store.transcript.append(large("one"))).rejects.toMatchObject({ code: "STORE_FULL" });
    const kept: string[] = [];
    let refusal: unknown;
    for (let number = 1; refusal === undefined && number < 20; number++) {
      const key = `step-${number}`;
      try {
        await store.spool.keep(large(key));
        kept.push(key);
      } catch (error) {
        refusal = error;
      }
      // Whatever it is that fills the disk, it takes what is freed before the next step comes.
      fill();
    }
    expect(kept.length).toBeGreaterThanOrEqual(5);
    const lost = `step-${kept.length + 1}`;
    expect(refusal).toMatchObject({
      code: "STORE_FULL",
      message: expect.stringMatching(
        new RegExp(`the disk is full .* In no place are now, of turn turn-a \\(\\d+ bytes\\): entries ${lost}\\.$`),
      ),
      context: { path, sessionId: "session-1", turnId: "turn-a", entryKeys: [lost] },
    });
    expect(readdirSync(disk)).not.toContain("state.db-reserve");

    rmSync(filler);
    await nextGrant(store);
    expect(await keysOf(store)).toEqual(kept);
    const records = await store.sessions.records("session-1");
    expect(records && verifyRecords(records)).toEqual([]);
    // The line that was cut short is told as damaged; the reserve is laid aside again once nothing waits any more.
    expect(await store.spool.waiting()).toMatchObject([{ stepCount: 0, damagedCount: 1 }]);
    await store.sessions.read("session-1");
    await store.close();
    await (await openSqliteStore(path, { host })).close();
    expect(statSync(join(disk, "state.db-reserve")).size).toBe(1024 * 1024);
  } finally {
    spawnSync("umount", [disk]);
  }
});

test("the reserve is laid aside again once what it made room for is back in the store", async () => {
  const path = pathOf();
  await runningStore(path);
  const store = await openSqliteStore(path, { host });
  truncateSync(`${path}-reserve`, 4096);
  await store.spool.keep(step("one"));
  await nextGrant(store);
  expect(await keysOf(store)).toEqual(["one"]);
  expect(statSync(`${path}-reserve`).size).toBe(1024 * 1024);
  await store.close();
});
