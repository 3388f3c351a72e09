import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";

/** Where the kernel keeps files in memory: a sync costs nothing there, and kill -9 loses nothing either. */
const inMemory = "/dev/shm";

/** Answers one folder for each test, and removes it after the test. */
export function tempFolder(): () => string {
  let folder: string | undefined;
  afterEach(() => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    folder = undefined;
  });
  return () => (folder ??= mkdtempSync(join(existsSync(inMemory) ? inMemory : tmpdir(), "turnkeeper-")));
}

/** Answers one folder for all tests of a file. */
export function suiteFolder(): () => string {
  let folder: string | undefined;
  afterAll(() => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });
  return () => (folder ??= mkdtempSync(join(existsSync(inMemory) ? inMemory : tmpdir(), "turnkeeper-")));
}
