import { closeSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { hasLockTable } from "./file-state.ts";
import { OwnLocks } from "../src/own-locks.ts";
import { startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

const sharedByte = 0x40000002;

// Only Linux tells which locks a process holds.
test.skipIf(!hasLockTable)("a lock is seen while it is held, by itself and merged with its neighbours", () => {
  const path = join(folder(), "state.db");
  const database = new Database(path);
  database.pragma("journal_mode = wal");
  database.exec("CREATE TABLE t (x)");
  const shm = statSync(`${path}-shm`, { bigint: true }).ino;
  const locks = OwnLocks.of([
    { inode: statSync(path, { bigint: true }).ino, position: sharedByte },
    { inode: shm, position: 128 },
  ]);
  expect(locks?.areHeld()).toBe(true);
  // A reader takes a mark beside the dead-man switch, which the kernel tells as one range.
  database.exec("BEGIN; SELECT * FROM t");
  expect(locks?.areHeld()).toBe(true);
  database.exec("COMMIT");
  for (const position of [5, 200]) expect(OwnLocks.of([{ inode: shm, position }])).toBe(undefined);
  readFileSync(path);
  expect(locks?.areHeld()).toBe(false);
  locks?.close();
  database.close();
});

// Only Linux tells which locks a process holds.
test.skipIf(!hasLockTable)("a table of any length is read to its end", () => {
  const databases = Array.from({ length: 300 }, (_, index) => {
    const database = new Database(join(folder(), `${index}.db`));
    database.pragma("journal_mode = wal");
    database.exec("CREATE TABLE t (x)");
    return database;
  });
  // The newest stand first, so that the oldest is told last.
  const first = statSync(join(folder(), "0.db"), { bigint: true }).ino;
  const locks = OwnLocks.of([{ inode: first, position: sharedByte }]);
  expect(readFileSync("/proc/locks").length).toBeGreaterThan(16 * 1024);
  expect(locks?.areHeld()).toBe(true);
  locks?.close();
  for (const database of databases) database.close();
});

// Only Linux tells which locks a process holds.
test.skipIf(!hasLockTable)(
  "a lock is not passed over while other processes take and free many",
  async () => {
    const database = new Database(join(folder(), "state.db"));
    database.pragma("journal_mode = wal");
    database.exec("CREATE TABLE t (x)");
    const inode = statSync(join(folder(), "state.db"), { bigint: true }).ino;
    const locks = OwnLocks.of([{ inode, position: sharedByte }]);
    // The table goes processor by processor, and ours is passed over for what comes and goes before it: one more process
    // than there are processors, so that each has some of it.
    const churners = Array.from({ length: availableParallelism() + 1 }, (_, index) => {
      const place = join(folder(), `churn-${index}`);
      mkdirSync(place);
      return startProcess("lock-churner", [place]);
    });
    try {
      for (const churner of churners) for await (const line of churner.lines) if (line["ready"] === true) break;
      // Until the table, read once, has passed it over: then it could have been missed.
      for (let isPassedOver = false; !isPassedOver;) {
        isPassedOver = !readFileSync("/proc/locks", "utf8").includes(`:${inode} `);
        for (let look = 0; look < 20; look++) expect(locks?.areHeld()).toBe(true);
        // A test that never got there must be able to run out of time.
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      for (const churner of churners) churner.kill();
      await Promise.all(churners.map((churner) => churner.ended));
      locks?.close();
      database.close();
    }
  },
  60_000,
);

// Only Linux tells which locks a process holds.
test.skipIf(!hasLockTable)("the lock of another process is none of this one's", { timeout: 60_000 }, async () => {
  const path = join(folder(), "state.db");
  const other = startProcess("turn-runner", [path, "other", "0"]);
  for await (const _line of other.lines) break;
  const { ino: inode } = statSync(path, { bigint: true });
  // Read once, the table may pass it over while others take and free theirs.
  await expect.poll(() => readFileSync("/proc/locks", "utf8")).toContain(`:${inode} `);
  expect(OwnLocks.of([{ inode, position: sharedByte }])).toBe(undefined);
  other.kill();
  await other.ended;
});

test("a file without a lock, and a platform that tells of none, answer that nothing can be known", () => {
  const path = join(folder(), "plain");
  writeFileSync(path, "");
  closeSync(openSync(path, "r"));
  expect(OwnLocks.of([{ inode: statSync(path, { bigint: true }).ino, position: 0 }])).toBe(undefined);
});
