import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { describe, expect, test } from "vitest";
import { grantOfTurn, keysOf, says, turnOf } from "./scene.ts";
import { recoverHere, sha256 } from "./recovery-scene.ts";
import { startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;
const pathOf = (): string => join(folder(), "state.db");
const files = (): string[] => ["", "-wal", "-mark"].map((end) => `${sha256(`${pathOf()}${end}`)}`);

/** A store with one entry, and another that a killed process left with rows in its log, moved over by a backup of the first. */
async function crashed(): Promise<void> {
  const path = pathOf();
  const store = await openSqliteStore(path, { host });
  await turnOf(store, "a");
  await store.transcript.append({ ...grantOfTurn("a", 1), entries: [says("backed up")] });
  await store.close();
  copyFileSync(path, join(folder(), "backup.db"));
  const process = startProcess("killed-store", [path]);
  for await (const line of process.lines) if (line["ready"]) process.kill();
  await process.ended;
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(4096);
}

const keys = async (path = pathOf()): Promise<readonly string[]> => {
  const store = await openSqliteStore(path, { host });
  try {
    return await keysOf(store);
  } finally {
    await store.close();
  }
};

describe("STORE-2: a log that a crash left", { timeout: 60_000 }, () => {
  test("is not laid over a file that was moved over its own; the next step makes the new one usable", async () => {
    await crashed();
    renameSync(join(folder(), "backup.db"), pathOf());
    const before = files();
    await expect(keys()).rejects.toMatchObject({
      code: "STORE_REPLACED",
      message: expect.stringMatching(/state\.db-wal still belongs to the old one.* Nothing was touched\./),
      context: { path: pathOf() },
    });
    expect(files()).toEqual(before);
    const report = await recoverHere(pathOf(), join(folder(), "new.db"));
    expect(report).toMatchObject({ isComplete: true, source: { walFrameCount: 0 } });
    expect(report.notes).toContainEqual(expect.stringContaining("-wal belongs to another file"));
    mkdirSync(join(folder(), "aside"));
    for (const end of ["-wal", "-shm"]) renameSync(`${pathOf()}${end}`, join(folder(), "aside", `state.db${end}`));
    expect(await keys()).toEqual(["backed up"]);
  });

  test("control: without the mark it is replayed onto the other file, whose own rows it hides", async () => {
    await crashed();
    renameSync(join(folder(), "backup.db"), pathOf());
    rmSync(`${pathOf()}-mark`);
    const found = await keys().catch((error: unknown) => error);
    expect(found).not.toEqual(["backed up"]);
  });

  /** One that was killed later still: the file was written since the backup, and the log belongs to what came then. */
  async function crashedLater(): Promise<void> {
    await crashed();
    const store = await openSqliteStore(pathOf(), { host });
    await store.transcript.append({ ...grantOfTurn("a", 1), entries: [says("checkpointed", "x".repeat(20_000))] });
    await store.close();
    const process = startProcess("killed-store", [pathOf(), "later"]);
    for await (const line of process.lines) if (line["ready"]) process.kill();
    await process.ended;
    expect(statSync(`${pathOf()}-wal`).size).toBeGreaterThan(4096);
  }

  test.each([
    ["an older copy of itself", () => join(folder(), "backup.db")],
    ["another store", () => join(folder(), "other.db")],
  ])("is not laid over %s that was copied into the file, in its place", async (_what, from) => {
    await crashedLater();
    const other = await openSqliteStore(join(folder(), "other.db"), { host });
    await turnOf(other, "a");
    await other.transcript.append({ ...grantOfTurn("a", 1), entries: [says("backed up")] });
    await other.close();
    const node = statSync(pathOf()).ino;
    copyFileSync(from(), pathOf());
    expect(statSync(pathOf()).ino).toBe(node);
    const before = files();
    await expect(keys()).rejects.toMatchObject({ code: "STORE_REPLACED", context: { path: pathOf() } });
    expect(files()).toEqual(before);
    const report = await recoverHere(pathOf(), join(folder(), "new.db"));
    expect(report.notes).toContainEqual(expect.stringContaining("-wal belongs to another file"));
    for (const end of ["-wal", "-shm"]) rmSync(`${pathOf()}${end}`, { force: true });
    expect(await keys()).toEqual(["backed up"]);
  });

  test("control: without what the mark tells of the file, the log is replayed onto the older copy", async () => {
    await crashedLater();
    copyFileSync(join(folder(), "backup.db"), pathOf());
    rmSync(`${pathOf()}-mark`);
    const found = await keys().catch((error: unknown) => error);
    expect(found).not.toEqual(["backed up"]);
  });

  test("is taken where both were moved, where both were copied, and where nothing was", async () => {
    await crashed();
    const all = ["backed up", ...Array.from({ length: 40 }, (_, index) => `in the log ${index}`)];
    const copied = join(folder(), "copied");
    mkdirSync(copied);
    spawnSync("sh", ["-c", `cp "${pathOf()}"* "${copied}"`]);
    expect(await keys(join(copied, "state.db"))).toEqual(all);
    const moved = join(folder(), "moved");
    mkdirSync(moved);
    for (const name of readdirSync(folder()).filter((one) => one.startsWith("state.db")))
      renameSync(join(folder(), name), join(moved, name));
    expect(await keys(join(moved, "state.db"))).toEqual(all);
  });

  test("is taken where the mark is torn or not there", async () => {
    await crashed();
    writeFileSync(`${pathOf()}-mark`, '{"database":"1:');
    expect(await keys()).toHaveLength(41);
  });
});
