import { expect, test } from "vitest";
import { Disk } from "../src/power/disk.ts";
import type { Fate } from "../src/power/disk.ts";
import type { Operation } from "../src/power/trace.ts";

const path = "/disk/home/state.db";
const made: readonly Operation[] = [
  { act: "make", path: "/disk/home", isFolder: true },
  { act: "make", path, isFolder: false },
];
const named: readonly Operation[] = [...made, { act: "sync", path: "/disk" }, { act: "sync", path: "/disk/home" }];
const write = (offset: number, text: string): Operation => ({ act: "write", path, offset, bytes: Buffer.from(text) });
const sync: Operation = { act: "sync", path };
const all = (what: ReturnType<Fate["ofChange"]>): Fate => ({ ofChange: () => what, isSectorKept: () => false });

function found(operations: readonly Operation[], fate: Fate): string | undefined {
  const disk = new Disk("/disk");
  for (const operation of operations) disk.apply(operation);
  return disk.afterCut(fate).get(path)?.toString();
}

test("what was synced is certain, what was written since may be gone", () => {
  const operations = [...named, write(0, "old"), sync, write(0, "new"), write(3, "er")];
  expect(found(operations, all("dropped"))).toBe("old");
  expect(found(operations, all("kept"))).toBe("newer");
});

test("each write has its own fate: a later one may be there without an earlier one", () => {
  const fates = ["dropped", "kept"] as const;
  let count = 0;
  const fate: Fate = { ...all("kept"), ofChange: () => fates[count++] ?? "kept" };
  expect(found([...named, sync, write(0, "one"), write(3, "two")], fate)).toBe("\0\0\0two");
});

test("a write is torn at the sectors of the file, not of the write", () => {
  const sectors = [true, false, true];
  let count = 0;
  const fate: Fate = { ofChange: () => "torn", isSectorKept: () => sectors[count++] ?? false };
  const torn = found([...named, sync, write(500, "x".repeat(600))], fate) ?? "";
  expect(torn).toBe(`${"\0".repeat(500)}${"x".repeat(12)}${"\0".repeat(512)}${"x".repeat(76)}`);
});

test("a file is found again when its name and its folder's were synced", () => {
  const contents = [write(0, "text"), sync];
  expect(found([...made, ...contents], all("dropped"))).toBeUndefined();
  expect(found([...made, { act: "sync", path: "/disk/home" }, ...contents], all("dropped"))).toBeUndefined();
  expect(found([...named, ...contents], all("dropped"))).toBe("text");
});

test("a removed file may come back until its folder is synced, and one made in its place is another", () => {
  const gone: Operation[] = [...named, write(0, "old"), sync, { act: "remove", path }];
  expect(found(gone, all("dropped"))).toBe("old");
  expect(found(gone, all("kept"))).toBeUndefined();
  const again: Operation[] = [...gone, { act: "make", path, isFolder: false }, write(0, "new"), sync];
  expect(found(again, all("dropped"))).toBe("old");
  expect(found([...again, { act: "sync", path: "/disk/home" }], all("dropped"))).toBe("new");
});

test("a moved file bears one name or the other until its folder is synced, and never both", () => {
  const to = "/disk/home/moved.db";
  const operations: Operation[] = [...named, write(0, "text"), sync, { act: "move", path, to }];
  const disk = new Disk("/disk");
  for (const operation of operations) disk.apply(operation);
  expect([...disk.afterCut(all("dropped")).keys()]).toEqual([path]);
  expect([...disk.afterCut(all("kept")).keys()]).toEqual([to]);
  disk.apply({ act: "sync", path: "/disk/home" });
  expect([...disk.afterCut(all("dropped")).keys()]).toEqual([to]);
});

test("a cut shortens what is certain only once it is synced", () => {
  const operations: Operation[] = [...named, write(0, "long text"), sync, { act: "cut", path, size: 4 }];
  expect(found(operations, all("dropped"))).toBe("long text");
  expect(found([...operations, sync], all("dropped"))).toBe("long");
});
