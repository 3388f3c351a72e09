import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { checkStructure, openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { grantTo } from "./scene.ts";
import { outputOf, startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;
const pathOf = (...names: string[]): string => join(folder(), ...names);
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const refusal = (code: string, says: string | RegExp = folder()): object => ({
  code,
  message: typeof says === "string" ? expect.stringContaining(says) : expect.stringMatching(says),
});

describe("the files of a store", () => {
  test("belong to their owner alone, with the folders that had to be made", async () => {
    const path = pathOf("home", "deeper", "state.db");
    const store = await openSqliteStore(path, { host });
    await grantTo(store, "a");
    expect([modeOf(pathOf("home")), modeOf(pathOf("home", "deeper"))]).toEqual(["700", "700"]);
    expect(readdirSync(pathOf("home", "deeper")).toSorted()).toEqual([
      "state.db",
      "state.db-mark",
      "state.db-reserve",
      "state.db-shm",
      "state.db-wal",
    ]);
    for (const end of ["", "-wal", "-shm", "-mark", "-reserve"]) expect(modeOf(`${path}${end}`)).toBe("600");
    await store.close();
    expect(readdirSync(pathOf("home", "deeper")).toSorted()).toEqual(["state.db", "state.db-mark", "state.db-reserve"]);
  });

  test("are taken from others where they were open to them, and a folder that was there is left as it is", async () => {
    const path = pathOf("state.db");
    chmodSync(folder(), 0o755);
    writeFileSync(path, "", { mode: 0o644 });
    chmodSync(path, 0o644);
    await (await openSqliteStore(path, { host })).close();
    expect([modeOf(path), modeOf(folder())]).toEqual(["600", "755"]);
  });

  test("are found through a symbolic link", async () => {
    mkdirSync(pathOf("real"));
    symlinkSync(pathOf("real"), pathOf("linked"));
    const store = await openSqliteStore(pathOf("linked", "state.db"), { host });
    expect(store.file.path).toBe(join(realpathSync(pathOf("real")), "state.db"));
    await store.close();
    symlinkSync(pathOf("real", "state.db"), pathOf("state-link.db"));
    const again = await openSqliteStore(pathOf("state-link.db"), { host });
    expect(again.file.path).toBe(store.file.path);
    await again.close();
  });
});

describe("a path that cannot be a store is refused, with the path and what to do, and left as it is", () => {
  test("a folder", async () => {
    await expect(openSqliteStore(folder(), { host })).rejects.toMatchObject(
      refusal("STORE_UNAVAILABLE", /is a folder.*state\.db/),
    );
  });

  test("a file with a second name", async () => {
    await (await openSqliteStore(pathOf("state.db"), { host })).close();
    linkSync(pathOf("state.db"), pathOf("second.db"));
    for (const name of ["state.db", "second.db"])
      await expect(openSqliteStore(pathOf(name), { host })).rejects.toMatchObject(
        refusal("STORE_UNAVAILABLE", /2 hard links/),
      );
  });

  test("a file where a folder should be", async () => {
    writeFileSync(pathOf("home"), "");
    await expect(openSqliteStore(pathOf("home", "state.db"), { host })).rejects.toMatchObject(
      refusal("STORE_UNAVAILABLE"),
    );
  });

  test("a symbolic link to nothing", async () => {
    symlinkSync(pathOf("nowhere.db"), pathOf("state.db"));
    await expect(openSqliteStore(pathOf("state.db"), { host })).rejects.toMatchObject(refusal("STORE_UNAVAILABLE"));
    expect(existsSync(pathOf("nowhere.db"))).toBe(false);
  });

  test("what SQLite takes for something other than a file", async () => {
    for (const path of ["", ":memory:", "file:state.db?mode=memory", "state.db\0"])
      await expect(openSqliteStore(path, { host })).rejects.toMatchObject(
        refusal("STORE_UNAVAILABLE", /createMemoryStore/),
      );
  });

  test("a WAL whose database is gone: an empty one in its place would have it deleted", async () => {
    writeFileSync(pathOf("state.db-wal"), "the last rows");
    await expect(openSqliteStore(pathOf("state.db"), { host })).rejects.toMatchObject(
      refusal("STORE_UNAVAILABLE", /still holds rows of it/),
    );
    expect(readdirSync(folder())).toEqual(["state.db-wal"]);
  });

  test("a file that is no database", async () => {
    const text = "This is a letter, not a database. ".repeat(50);
    writeFileSync(pathOf("letter.txt"), text);
    await expect(openSqliteStore(pathOf("letter.txt"), { host })).rejects.toMatchObject(refusal("STORE_CORRUPT"));
    expect(readFileSync(pathOf("letter.txt"), "utf8")).toBe(text);
  });

  test("a database of another program", async () => {
    for (const mode of ["delete", "wal"]) {
      const path = pathOf(`${mode}.db`);
      const other = new Database(path);
      other.exec(`PRAGMA journal_mode = ${mode}; CREATE TABLE bookmark (url TEXT); PRAGMA user_version = 1;`);
      other.close();
      chmodSync(path, 0o644);
      const [before, names] = [readFileSync(path), readdirSync(folder())];
      await expect(openSqliteStore(path, { host })).rejects.toMatchObject(
        refusal("STORE_UNAVAILABLE", /another program/),
      );
      expect(readFileSync(path).equals(before)).toBe(true);
      expect(readdirSync(folder())).toEqual(names);
      expect(modeOf(path)).toBe("644");
    }
  });

  test("a store of a later release", async () => {
    await (await openSqliteStore(pathOf("state.db"), { host })).close();
    const later = new Database(pathOf("state.db"));
    later.pragma("user_version = 9999");
    later.close();
    const [before, names] = [readFileSync(pathOf("state.db")), readdirSync(folder())];
    await expect(openSqliteStore(pathOf("state.db"), { host })).rejects.toMatchObject(
      refusal("STORE_NEWER", /9999.*Nothing was touched/),
    );
    // Whoever only asks leaves nothing either.
    expect(await checkStructure(pathOf("state.db"))).toEqual({ faults: [], indexFaults: [] });
    expect(readFileSync(pathOf("state.db")).equals(before)).toBe(true);
    expect(readdirSync(folder())).toEqual(names);
  });

  test("options that are none", async () => {
    const open = (options: object) => openSqliteStore(pathOf("state.db"), { host }, options);
    await expect(open({ journalmode: "wal" })).rejects.toMatchObject(refusal("STORE_CONTRACT", /"journalmode"/));
    await expect(open({ journalMode: "off" })).rejects.toMatchObject(
      refusal("STORE_CONTRACT", /"wal" or "delete".*"off"/),
    );
    expect(existsSync(pathOf("state.db"))).toBe(false);
  });
});

/** Root may write everywhere, so the refusals are seen as somebody else; anybody else is somebody already. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

test("what this user may not write is refused as read-only", async () => {
  const path = pathOf("state.db");
  await (await openSqliteStore(path, { host })).close();
  const open = async (): Promise<unknown> => (await outputOf(startProcess("open-store", [path], nobody)))[0];

  chmodSync(folder(), 0o755);
  chmodSync(path, 0o444);
  expect(await open()).toMatchObject({ code: "STORE_READONLY", message: expect.stringContaining(path) });
  chmodSync(path, 0o666);
  chmodSync(folder(), 0o555);
  expect(await open()).toMatchObject({ code: "STORE_READONLY", message: expect.stringContaining(path) });
  chmodSync(folder(), 0o755);
}, 60_000);
