import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sharedFileSystem } from "../src/file-system.ts";
import { chooseJournal, isWalSafe } from "../src/sqlite-version.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

test("releases that can lose pages of a WAL are told from those that cannot", () => {
  const safe = ["3.44.6", "3.44.9", "3.50.7", "3.51.3", "3.52.0", "3.53.2", "3.100.0", "4.0.0"];
  const unsafe = ["3.7.0", "3.40.1", "3.44.5", "3.45.0", "3.49.2", "3.50.6", "3.51.0", "3.51.2", "", "unknown"];
  expect(safe.filter((version) => !isWalSafe(version))).toEqual([]);
  expect(unsafe.filter((version) => isWalSafe(version))).toEqual([]);
});

test("an unsafe release turns no WAL on, and leaves one that is there, with a note", () => {
  expect(chooseJournal({ version: "3.53.2", wanted: "wal" })).toEqual({ mode: "wal" });
  expect(chooseJournal({ version: "3.53.2", wanted: "delete" })).toEqual({ mode: "delete" });
  expect(chooseJournal({ version: "3.40.1", wanted: "wal" })).toMatchObject({
    mode: "delete",
    note: expect.stringContaining("3.51.3"),
  });
  expect(chooseJournal({ version: "3.40.1", wanted: "wal", onDisk: "wal" })).toMatchObject({
    mode: "wal",
    note: expect.stringContaining("3.40.1"),
  });
  expect(chooseJournal({ version: "3.53.2", wanted: "wal", onDisk: "wal" })).toEqual({ mode: "wal" });
});

test("on a file system that another machine may share a new store gets no WAL, and one that has it keeps it, with a note", () => {
  const shared = { version: "3.53.2", wanted: "wal", sharedFileSystem: "NFS" } as const;
  expect(chooseJournal(shared)).toMatchObject({ mode: "delete", note: expect.stringContaining("lies on NFS") });
  expect(chooseJournal({ ...shared, onDisk: "wal" })).toMatchObject({
    mode: "wal",
    note: expect.stringContaining("Move it to a local disk"),
  });
  expect(chooseJournal({ ...shared, onDisk: "delete" })).toMatchObject({ mode: "delete" });
});

test("the file system of a path is named where another machine may share it", () => {
  const named = (type: number): string | undefined => sharedFileSystem("state.db", () => ({ type }));
  expect([0x6969, 0xfe534d42, 0xfe534d42 | 0, 0x65735546].map(named)).toEqual([
    "NFS",
    "SMB",
    "SMB",
    "FUSE or virtiofs",
  ]);
  expect([0xef53, 0x01021994, 0x9123683e].map(named)).toEqual([undefined, undefined, undefined]);
  const asked: string[] = [];
  const refused = (folderOf: string): never => {
    asked.push(folderOf);
    throw new Error("not on this platform");
  };
  expect(sharedFileSystem(join("somewhere", "state.db"), refused)).toBe(undefined);
  expect(asked).toEqual(["somewhere"]);
  expect(sharedFileSystem(join(folder(), "state.db"))).toBe(undefined);
});

test("a store keeps the journal it was made with", async () => {
  const path = join(folder(), "state.db");
  const made = await openSqliteStore(path, { host: systemHost }, { journalMode: "delete" });
  expect(made.file).toMatchObject({ journalMode: "delete", notes: [] });
  await made.close();
  const again = await openSqliteStore(path, { host: systemHost });
  expect(again.file).toMatchObject({
    journalMode: "delete",
    notes: [expect.stringContaining("keeps its journal mode")],
  });
  await again.close();
});

test("the SQLite that this package brings is a safe one", async () => {
  const store = await openSqliteStore(join(folder(), "state.db"), { host: systemHost });
  expect(isWalSafe(store.file.sqliteVersion)).toBe(true);
  expect(store.file).toMatchObject({ journalMode: "wal", notes: [] });
  await store.close();
});
