import { chmod, link, mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { searchFiles } from "../src/file-search.ts";
import type { SearchMessage, SearchRequest } from "../src/file-search.ts";
import { asOrdinaryUser } from "./ordinary-user.ts";
import { workbench } from "./workbench.ts";

interface Found {
  readonly lines: readonly string[];
  readonly searched: readonly string[];
  readonly end: Extract<SearchMessage, { kind: "end" }>;
}

async function search(workspace: string, pattern: string, request: Partial<SearchRequest> = {}): Promise<Found> {
  const lines: string[] = [];
  const searched: string[] = [];
  let end: Found["end"] | undefined;
  await searchFiles(
    {
      workspace,
      start: workspace,
      forbiddenPaths: [],
      ignoreCase: false,
      matchesMax: 100,
      ...request,
      pattern,
    },
    (message) => {
      if (message.kind === "file") searched.push(message.path);
      else if (message.kind === "matches") {
        lines.push(...message.matches.map(({ path: file, line, text }) => `${file}:${line}: ${text}`));
      } else end = message;
    },
  );
  if (end === undefined) throw new Error("The search said no end.");
  return { lines, searched, end };
}

/** Writes files by their paths. */
async function tree(folder: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
    await writeFile(path.join(folder, name), content);
  }
}

test("lines that fit are found in the order of paths, with their numbers, whatever ends them", async () => {
  const { folder } = await workbench();
  await tree(folder, { "b.txt": "x\nfoo 1\r\n\nfoo 2", "a/c.txt": "foo 3\n", "a.txt": "nothing\n" });
  const found = await search(folder, "^foo \\d$");
  expect(found.lines).toEqual(["a/c.txt:1: foo 3", "b.txt:2: foo 1", "b.txt:4: foo 2"]);
  expect(found.end).toEqual({ kind: "end", counts: { searchedCount: 3, skippedCount: 0 }, limited: false });
});

test("a pattern for empty lines does not find the nothing behind the last line end", async () => {
  const { folder } = await workbench();
  await tree(folder, { a: "x\n\ny\n", b: "" });
  expect((await search(folder, "^$")).lines).toEqual(["a:2: "]);
});

test("the rules of .gitignore hold below their folder, the nearest decides, and .git and node_modules are left out", async () => {
  const { folder } = await workbench();
  await tree(folder, {
    ".gitignore": "*.log\n/build/\n!keep.log\n",
    "a.log": "x",
    "keep.log": "x",
    "build/a.txt": "x",
    "sub/build/a.txt": "x",
    "sub/.gitignore": "secret*\n!b.log\n",
    "sub/b.log": "x",
    "sub/secret.txt": "x",
    "secret.txt": "x",
    ".git/config": "x",
    "sub/node_modules/m/index.js": "x",
    ".hidden/a": "x",
  });
  const { lines } = await search(folder, "x");
  expect(lines.map((line) => line.split(":")[0])).toEqual([
    ".hidden/a",
    "keep.log",
    "secret.txt",
    "sub/b.log",
    "sub/build/a.txt",
  ]);
});

test("rules above the folder that is searched hold too; a folder that is named itself is searched", async () => {
  const { folder } = await workbench();
  await tree(folder, { ".gitignore": "*.log\nbuild\n", "sub/a.log": "x", "sub/a.txt": "x", "build/a.txt": "x" });
  expect((await search(folder, "x", { start: path.join(folder, "sub") })).searched).toEqual(["sub/a.txt"]);
  expect((await search(folder, "x", { start: path.join(folder, "build") })).searched).toEqual(["build/a.txt"]);
  expect((await search(folder, "x", { start: path.join(folder, "sub", "a.log") })).searched).toEqual(["sub/a.log"]);
});

test("a glob keeps what fits, one with ! leaves it out", async () => {
  const { folder } = await workbench();
  await tree(folder, { "a.ts": "x", "b.md": "x", "src/c.ts": "x", "src/deep/d.ts": "x" });
  expect((await search(folder, "x", { glob: "*.ts" })).searched).toEqual(["a.ts", "src/c.ts", "src/deep/d.ts"]);
  expect((await search(folder, "x", { glob: "src/*.ts" })).searched).toEqual(["src/c.ts"]);
  expect((await search(folder, "x", { glob: "!*.ts" })).searched).toEqual(["b.md"]);
});

test("binary and too large files are counted, not searched", async () => {
  const { folder } = await workbench();
  await tree(folder, { binary: Buffer.from("x\0y"), large: Buffer.alloc(4_194_305, "x"), small: "x" });
  const { searched, end } = await search(folder, "x");
  expect(searched).toEqual(["small"]);
  expect(end.counts).toEqual({ searchedCount: 1, skippedCount: 2 });
});

test("no link is followed, neither to a file nor to a folder", async () => {
  const outside = await workbench();
  await tree(outside.folder, { secret: "x" });
  const { folder } = await workbench();
  await symlink(path.join(outside.folder, "secret"), path.join(folder, "file"));
  await symlink(outside.folder, path.join(folder, "folder"));
  await symlink(folder, path.join(folder, "circle"));
  expect(await search(folder, "x")).toMatchObject({ lines: [], searched: [] });
});

test("a forbidden file is not opened, under none of its names", async () => {
  const { folder } = await workbench();
  await tree(folder, { "state.db": "x", "state.db-wal": "x", note: "x" });
  await link(path.join(folder, "state.db"), path.join(folder, "other-name"));
  const forbiddenPaths = [`${path.join(folder, "state.db")}*`];
  expect((await search(folder, "x", { forbiddenPaths })).searched).toEqual(["note"]);
  // Control: without the rule all of them are.
  expect((await search(folder, "x")).searched).toHaveLength(4);
});

test("the search ends at its limit and says so", async () => {
  const { folder } = await workbench();
  await tree(folder, { a: "x\n".repeat(10), b: "x\n" });
  const found = await search(folder, "x", { matchesMax: 3 });
  expect(found.lines).toHaveLength(3);
  expect(found.end.limited).toBe(true);
  expect(found.searched).toEqual(["a"]);
});

test("of a long line the part around the match is shown", async () => {
  const { folder } = await workbench();
  await tree(folder, { a: `${"a".repeat(5_000)}needle${"b".repeat(5_000)}` });
  const [line = ""] = (await search(folder, "needle")).lines;
  expect(line.length).toBeLessThan(330);
  expect(line).toMatch(/^a:1: \.\.\.a+needleb+\.\.\.$/);
});

test("a folder that cannot be read is counted, and the rest is searched", async () => {
  const { folder } = await workbench();
  await tree(folder, { "a/x": "x", "b/x": "x" });
  await chmod(path.join(folder, "a"), 0o000);
  try {
    await asOrdinaryUser(folder, async () => {
      const { end, searched } = await search(folder, "x");
      expect(searched).toEqual(["b/x"]);
      expect(end.counts.skippedCount).toBe(1);
    });
  } finally {
    await chmod(path.join(folder, "a"), 0o755);
  }
});
