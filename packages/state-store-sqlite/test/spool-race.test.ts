/** A replay that takes a file between a writer's opening of it and its writing to it: the one race of the spool. */
import * as fileSystem from "node:fs";
import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { afterEach, expect, test, vi } from "vitest";
import { SpoolFolder } from "../src/spool-folder.ts";
import { tempFolder } from "./temp-folder.ts";

type FileSystem = typeof fileSystem;

vi.mock("node:fs", async (importOriginal) => {
  const fs = await importOriginal<FileSystem>();
  return { ...fs, writeSync: vi.fn<FileSystem["writeSync"]>(fs.writeSync), lstatSync: vi.fn(fs.lstatSync) };
});

const folder = tempFolder();
afterEach(() => void vi.restoreAllMocks());

/** Keeps `two` while a replay claims and reads the file, and then lets go of what it read; answers what is left. */
function overtaken(): readonly string[] {
  const spool = new SpoolFolder(join(folder(), "state.db"), virtualHost().random);
  spool.keep("s", "one");
  const write = vi.mocked(fileSystem.writeSync);
  const real = write.getMockImplementation();
  if (!real) throw new Error("writeSync is not the mocked one.");
  let read: ReturnType<SpoolFolder["claim"]> = [];
  write.mockImplementationOnce((...args: Parameters<FileSystem["writeSync"]>) => {
    read = spool.claim("s");
    return real(...args);
  });
  spool.keep("s", "two");
  expect(read.flatMap(({ lines }) => lines)).toEqual(["one"]);
  for (const file of read) spool.letGo(file, []);
  return spool.claim("s").flatMap(({ lines }) => lines);
}

test("SPOOL-1: a line that came after its file was read is written again, where the next replay finds it", () => {
  expect(overtaken()).toEqual(["two"]);
});

test("SPOOL-1 control: without the second look at the name the line goes with the file that was read before it", () => {
  const look = vi.mocked(fileSystem.lstatSync);
  const real = look.getMockImplementation() as (path: fileSystem.PathLike, options: object) => fileSystem.Stats;
  // The name is taken for that of whatever file bears it or bore it.
  const blind = (path: fileSystem.PathLike, options: object): fileSystem.Stats => {
    const isName = typeof path === "string" && path.endsWith("s.jsonl");
    if (!isName) return real(path, options);
    const names = fileSystem.readdirSync(join(folder(), "state.db-spool"));
    const [claimed] = names.filter((name) => name.startsWith("s~"));
    return real(claimed === undefined ? path : join(folder(), "state.db-spool", claimed), options);
  };
  look.mockImplementation(blind as FileSystem["lstatSync"]);
  expect(overtaken()).toEqual([]);
});
