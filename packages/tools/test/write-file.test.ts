import { spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { chmod, chown, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { expect, test, vi } from "vitest";
import { createWriteFileTool } from "../src/index.ts";
import { asOrdinaryUser } from "./ordinary-user.ts";
import { rejection, workbench } from "./workbench.ts";

const tool = createWriteFileTool({ host: systemHost });

test("a new file is written with its folders, and the answer says so in bytes", async () => {
  const { context, folder } = await workbench();
  expect(await tool.execute({ path: "a/b/note.txt", content: "grüße\n" }, context)).toBe(
    'Wrote 8 bytes to "a/b/note.txt" (new file).',
  );
  expect(await readFile(path.join(folder, "a", "b", "note.txt"), "utf8")).toBe("grüße\n");
});

test("a file that is there is replaced, its mode and owner kept", async () => {
  const { context, folder } = await workbench();
  const target = path.join(folder, "run.sh");
  await writeFile(target, "old");
  if (process.getuid?.() === 0) await chown(target, 1_234, 2_345);
  await chmod(target, 0o754);
  const before = await stat(target);
  expect(await tool.execute({ path: "run.sh", content: "" }, context)).toBe('Wrote 0 bytes to "run.sh" (replaced).');
  const after = await stat(target);
  expect([after.size, after.mode, after.uid, after.gid]).toEqual([0, before.mode, before.uid, before.gid]);
  expect(await readdir(folder)).toEqual(["run.sh"]);
});

test("a new file gets the mode that the umask leaves", async () => {
  const { context, folder } = await workbench();
  const umask = process.umask(0o027);
  try {
    await tool.execute({ path: "note", content: "x" }, context);
  } finally {
    process.umask(umask);
  }
  expect((await stat(path.join(folder, "note"))).mode & 0o777).toBe(0o640);
});

test("a reader sees the old content or the new, never a part", async () => {
  const { context, folder } = await workbench();
  const sizes = new Set<number>();
  const target = path.join(folder, "note");
  await writeFile(target, "a".repeat(1_000_000));
  for (const letter of ["b", "c", "d"]) {
    const writing = { done: false };
    const call = tool
      .execute({ path: "note", content: letter.repeat(1_000_000) }, context)
      .finally(() => (writing.done = true));
    while (!writing.done) {
      const seen = await readFile(target, "utf8");
      sizes.add(seen.length);
      expect(new Set(seen).size).toBe(1);
    }
    await call;
  }
  expect([...sizes]).toEqual([1_000_000]);
});

test("a link inside the workspace stays a link; what it leads to is replaced", async () => {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "real"), "old");
  await symlink("real", path.join(folder, "alias"));
  await tool.execute({ path: "alias", content: "new" }, context);
  expect(await readFile(path.join(folder, "real"), "utf8")).toBe("new");
  expect((await readdir(folder, { withFileTypes: true })).map((entry) => [entry.name, entry.isSymbolicLink()])).toEqual(
    [
      ["alias", true],
      ["real", false],
    ],
  );
});

test("a folder, a pipe and a file in the way are told in one line", async () => {
  const { context, folder } = await workbench();
  await mkdir(path.join(folder, "folder"));
  await writeFile(path.join(folder, "file"), "x");
  spawnSync("mkfifo", [path.join(folder, "pipe")]);
  const messageFor = async (target: string): Promise<string> =>
    (await rejection(tool.execute({ path: target, content: "x" }, context))).message;
  expect(await messageFor("folder")).toBe('Could not write "folder": it is a folder.');
  expect(await messageFor(".")).toBe('Could not write ".": it is a folder.');
  expect(await messageFor("pipe")).toBe('Could not write "pipe": it is a named pipe.');
  expect(await messageFor("file/below")).toBe(
    'Could not write "file/below": a part of the path is a file, not a folder.',
  );
});

test("a folder without permission is told in one line", async () => {
  const { context, folder } = await workbench();
  await chmod(folder, 0o555);
  await asOrdinaryUser(folder, async () => {
    const error = await rejection(tool.execute({ path: "new", content: "new" }, context));
    expect(error.message).toBe('Could not write "new": permission denied.');
  });
  await chmod(folder, 0o755);
  expect(await readdir(folder)).toEqual([]);
});

test("a stop before the file is in place leaves the old one and nothing beside it", async () => {
  const bench = await workbench();
  await writeFile(path.join(bench.folder, "note"), "old");
  // The name of the temporary file is the last thing that is asked for before it is written.
  const host = { ...systemHost, random: { ...systemHost.random, id: vi.fn(() => (bench.stop(), "temporary")) } };
  const error = await rejection(createWriteFileTool({ host }).execute({ path: "note", content: "new" }, bench.context));
  expect(error).toMatchObject({ code: "CALL_INTERRUPTED" });
  expect(host.random.id).toHaveBeenCalledOnce();
  expect(await readFile(path.join(bench.folder, "note"), "utf8")).toBe("old");
  expect(await readdir(bench.folder)).toEqual(["note"]);
});

test("a link that takes the place of a missing folder while the file is written is not followed", async () => {
  const { context, folder } = await workbench();
  const outside = await workbench();
  const swap = (): string => {
    symlinkSync(outside.folder, path.join(folder, "new"));
    return "temporary";
  };
  const host = { ...systemHost, random: { ...systemHost.random, id: swap } };
  const error = await rejection(createWriteFileTool({ host }).execute({ path: "new/note", content: "x" }, context));
  expect(error).toMatchObject({ code: "PATH_REFUSED" });
  expect(await readdir(outside.folder)).toEqual([]);
});

test("a call of a stopped turn writes nothing", async () => {
  const bench = await workbench();
  bench.stop();
  expect(await rejection(tool.execute({ path: "a/note", content: "x" }, bench.context))).toMatchObject({
    code: "CALL_INTERRUPTED",
  });
  expect(await readdir(bench.folder)).toEqual([]);
});
