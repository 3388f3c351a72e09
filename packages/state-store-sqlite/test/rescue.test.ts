import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, renameSync, statSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { expect, test } from "vitest";
import { checksums } from "./file-state.ts";
import { keysOf, says, turnOf } from "./scene.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;

/** A store under a turn that has said one thing; what happens to its files is noticed by the next. */
async function failing(happens: (path: string) => void): Promise<{ readonly path: string; readonly error: Error }> {
  const path = join(folder(), "state.db");
  const store = await openSqliteStore(path, { host });
  const { grant, turnId } = await turnOf(store, "a");
  await store.transcript.append({ grant, turnId, entries: [says("said", "x".repeat(1_500_000))] });
  happens(path);
  const append = store.transcript.append({ grant, turnId, entries: [says("refused")] });
  const error = await append.then(
    () => new Error("nothing was noticed"),
    (reason: unknown) => reason as Error,
  );
  await store.close();
  return { path, error };
}

/** What a store has that was copied from these files, which this process has open. */
async function keysIn(path: string): Promise<readonly string[]> {
  const copy = join(folder(), "copy.db");
  for (const end of ["", "-wal"]) spawnSync("cp", [`${path}${end}`, `${copy}${end}`]);
  const store = await openSqliteStore(copy, { host });
  const keys = await keysOf(store);
  await store.close();
  return keys;
}

test("a log that was unlinked is put back whole, for its owner alone", async () => {
  let before = "";
  const { path, error } = await failing((at) => {
    before = checksums(at);
    unlinkSync(`${at}-wal`);
  });
  expect(error.message).toContain("Its -wal was put back from this process");
  expect(checksums(path)).toBe(before);
  expect(statSync(`${path}-wal`).mode & 0o777).toBe(0o600);
  expect(await keysIn(path)).toContain("said");
});

test("a log is not put back under a database that was written since", async () => {
  const written = await failing((at) => {
    unlinkSync(`${at}-wal`);
    const later = Date.now() / 1000 + 60;
    utimesSync(at, later, later);
  });
  expect(written.error.message).toContain("bring back what was deleted");
  expect(existsSync(`${written.path}-wal`)).toBe(false);
});

test("a log is not put back over another one", async () => {
  const { path, error } = await failing((at) => {
    unlinkSync(`${at}-wal`);
    writeFileSync(`${at}-wal`, "another");
  });
  expect(error.message).not.toContain("put back");
  expect(statSync(`${path}-wal`).size).toBe("another".length);
});

test("a log that was only moved is left to whoever moved it", async () => {
  const { path, error } = await failing((at) => renameSync(`${at}-wal`, `${at}-moved`));
  expect(error.message).toContain("bring back what was deleted");
  expect(existsSync(`${path}-wal`)).toBe(false);
});

for (const [what, happens] of [
  ["unlinked", (path: string) => unlinkSync(path)],
  [
    "replaced",
    (path: string) => {
      writeFileSync(`${path}.new`, "");
      renameSync(`${path}.new`, path);
    },
  ],
] as const)
  test(`a database that was ${what} is laid safe with its log, as its last acknowledged write left it`, async () => {
    const { path, error } = await failing(happens);
    expect(error).toMatchObject({
      context: { rescued: `${path}-rescued` },
      message: expect.stringContaining(`is in ${path}-rescued`),
    });
    expect(await keysIn(join(`${path}-rescued`, "state.db"))).toContain("said");
    expect(statSync(join(`${path}-rescued`, "state.db")).mode & 0o777).toBe(0o600);
    expect(statSync(`${path}-rescued`).mode & 0o777).toBe(0o700);
  });

test("a database that was only moved, or has another name, is left to whoever moved it", async () => {
  const { path } = await failing((at) => renameSync(at, `${at}.moved`));
  expect(existsSync(`${path}-rescued`)).toBe(false);
});

test("an earlier rescue is not written over", async () => {
  const { path } = await failing((at) => {
    copyFileSync("/dev/null", `${at}-rescued`);
    unlinkSync(at);
  });
  expect(await keysIn(join(`${path}-rescued-2`, "state.db"))).toContain("said");
});
