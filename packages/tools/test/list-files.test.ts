import { spawnSync } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { createListFilesTool } from "../src/index.ts";
import { rejection, workbench } from "./workbench.ts";

test("entries are sorted by name and show their kind, size and where links lead", async () => {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "b.txt"), "12345");
  await writeFile(path.join(folder, ".hidden"), "");
  await mkdir(path.join(folder, "a"));
  await writeFile(path.join(folder, "Z"), "ä");
  await symlink("/etc/passwd", path.join(folder, "link"));
  spawnSync("mkfifo", [path.join(folder, "pipe")]);
  expect(await createListFilesTool().execute({}, context)).toBe(
    [".hidden  0 bytes", "Z  2 bytes", "a/", "b.txt  5 bytes", "link -> /etc/passwd", "pipe  (named pipe)"].join("\n"),
  );
});

test("a folder below is listed by its path; an empty one says so", async () => {
  const { context, folder } = await workbench();
  await mkdir(path.join(folder, "a", "b"), { recursive: true });
  expect(await createListFilesTool().execute({ path: "a" }, context)).toBe("b/");
  expect(await createListFilesTool().execute({ path: "a/b" }, context)).toBe("(the folder is empty)");
});

test("of a large folder the first names come, and how many there are", async () => {
  const { context, folder } = await workbench();
  const names = Array.from({ length: 50 }, (_, index) => `n${String(index).padStart(2, "0")}`);
  await Promise.all(names.map((name) => writeFile(path.join(folder, name), "")));
  const expected = names.slice(0, 7).map((name) => `${name}  0 bytes`);
  expect(await createListFilesTool({ listEntriesMax: 7 }).execute({}, context)).toBe(
    [...expected, "[43 more of 50 entries not shown]"].join("\n"),
  );
});

test("a name with a line break does not pass for two entries", async () => {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "a\nb/".replace("/", "")), "");
  expect(await createListFilesTool().execute({}, context)).toBe('"a\\nb"  0 bytes');
});

test("what is not a folder is told in one line", async () => {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "file"), "x");
  const messageFor = async (target: string): Promise<string> =>
    (await rejection(createListFilesTool().execute({ path: target }, context))).message;
  expect(await messageFor("gone")).toBe('Could not list "gone": it does not exist.');
  expect(await messageFor("file")).toBe('Could not list "file": it is a file, not a folder.');
});

test("a call of a stopped turn lists nothing", async () => {
  const bench = await workbench();
  bench.stop();
  expect(await rejection(createListFilesTool().execute({}, bench.context))).toMatchObject({ code: "CALL_INTERRUPTED" });
});
