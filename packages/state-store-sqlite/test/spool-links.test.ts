/** Names in the spool that lead elsewhere, on a platform that has no flag against following them. */
import * as fileSystem from "node:fs";
import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { afterEach, describe, expect, test, vi } from "vitest";
import { SpoolFolder } from "../src/spool-folder.ts";
import { tempFolder } from "./temp-folder.ts";

type FileSystem = typeof fileSystem;

vi.mock("node:fs", async (importOriginal) => {
  const fs = await importOriginal<FileSystem>();
  const { O_NOFOLLOW: _missing, ...constants } = fs.constants;
  return { ...fs, constants, lstatSync: vi.fn<FileSystem["lstatSync"]>(fs.lstatSync) };
});

const folder = tempFolder();
afterEach(() => void vi.restoreAllMocks());

const spoolOf = (): SpoolFolder => new SpoolFolder(join(folder(), "state.db"), virtualHost().random);
const refused = expect.objectContaining({
  code: "STORE_UNAVAILABLE",
  context: expect.objectContaining({ path: expect.stringMatching(/state\.db$/) }),
});

describe("a step is refused, at once, and nothing is written elsewhere, where its file", () => {
  test.each([
    ["is a link to a file", "target"],
    ["is a link to nothing", "nowhere"],
  ])("%s", (_name, target) => {
    const spool = spoolOf();
    fileSystem.mkdirSync(spool.path);
    fileSystem.writeFileSync(join(folder(), "target"), "mine\n");
    fileSystem.symlinkSync(join(folder(), target), join(spool.path, "s.jsonl"));
    expect(() => spool.keep("s", "one")).toThrow(refused);
    expect(fileSystem.readFileSync(join(folder(), "target"), "utf8")).toBe("mine\n");
    expect(fileSystem.existsSync(join(folder(), "nowhere"))).toBe(false);
    expect(() => spool.files()).toThrow(refused);
  });

  test("bears another inode every time that it is looked at", () => {
    const spool = spoolOf();
    const look = vi.mocked(fileSystem.lstatSync);
    const real = look.getMockImplementation() as (path: fileSystem.PathLike, options: object) => fileSystem.Stats;
    let ino = 1;
    const restless = (path: fileSystem.PathLike, options: object): fileSystem.Stats | undefined => {
      const stats = real(path, options);
      return String(path).endsWith(".jsonl") && stats ? Object.assign(stats, { ino: -ino++ }) : stats;
    };
    look.mockImplementation(restless as FileSystem["lstatSync"]);
    expect(() => spool.keep("s", "one")).toThrow(refused);
    expect(ino).toBeGreaterThan(10);
  });
});

describe("a spool's folder whose name bears something else", () => {
  test.each([
    ["a file", (path: string) => fileSystem.writeFileSync(path, "mine\n")],
    ["a link to a folder", (path: string) => fileSystem.symlinkSync(join(folder(), "elsewhere"), path)],
  ])("%s, is told in one way, whoever looks, and keeps nobody from a deletion", (_name, make) => {
    const spool = spoolOf();
    const theirs = join(folder(), "elsewhere", "s.jsonl");
    fileSystem.mkdirSync(join(folder(), "elsewhere"));
    fileSystem.writeFileSync(theirs, "theirs\n");
    make(spool.path);
    for (const use of [() => spool.keep("s", "one"), () => spool.files(), () => spool.claim("s")])
      expect(use).toThrow(/it is a link or no folder, or belongs to another user\. Move it away/);
    spool.forget("s");
    expect(fileSystem.readFileSync(theirs, "utf8")).toBe("theirs\n");
  });
});
