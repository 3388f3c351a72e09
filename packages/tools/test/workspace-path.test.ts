import { link, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { expect, onTestFinished, test } from "vitest";
import {
  createEditFileTool,
  createListFilesTool,
  createReadFileTool,
  createSearchFilesTool,
  createWriteFileTool,
} from "../src/index.ts";
import type { FileToolsOptions } from "../src/index.ts";
import { rejection, workbench } from "./workbench.ts";
import type { Workbench } from "./workbench.ts";

async function outsideFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "turnkeeper-outside-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(path.join(folder, "secret"), "secret");
  return folder;
}

/** Tries the path with each file tool; answers it with the code each one refused it with. */
async function refusals(
  { context }: Workbench,
  target: string,
  options?: FileToolsOptions,
): Promise<readonly (string | undefined)[]> {
  const calls = [
    createReadFileTool({}, options).execute({ path: target }, context),
    createWriteFileTool({ host: systemHost }, options).execute({ path: target, content: "overwritten" }, context),
    createListFilesTool(options).execute({ path: target }, context),
    createEditFileTool({ host: systemHost }, options).execute({ path: target, old_text: "s", new_text: "x" }, context),
    createSearchFilesTool({ host: systemHost }, options).execute({ path: target, pattern: "s" }, context),
  ];
  return [target, ...(await Promise.all(calls.map(async (call) => (await rejection(call)).code)))];
}

const allRefused = (target: string): readonly string[] => [
  target,
  "PATH_REFUSED",
  "PATH_REFUSED",
  "PATH_REFUSED",
  "PATH_REFUSED",
  "PATH_REFUSED",
];

test("a path that leaves the workspace is refused, whether something is there or not", async () => {
  const bench = await workbench();
  const outside = await outsideFolder();
  const relative = path.relative(bench.folder, outside);
  for (const target of [
    "..",
    "../new",
    "a/../../new",
    relative,
    `${relative}/secret`,
    `${relative}/new/deep`,
    outside,
    "/etc/passwd",
    "/",
  ]) {
    expect(await refusals(bench, target)).toEqual(allRefused(target));
  }
  expect(await readdir(outside)).toEqual(["secret"]);
});

test("a sibling folder whose name begins like the workspace's is outside", async () => {
  const bench = await workbench();
  const sibling = `${bench.folder}-more`;
  await mkdir(sibling);
  onTestFinished(() => rm(sibling, { recursive: true }));
  expect(await refusals(bench, `${sibling}/new`)).toEqual(allRefused(`${sibling}/new`));
});

test("a link that leads out of the workspace is refused, as the target and on the way", async () => {
  const bench = await workbench();
  const outside = await outsideFolder();
  await symlink(outside, path.join(bench.folder, "folder-link"));
  await symlink(path.join(outside, "secret"), path.join(bench.folder, "file-link"));
  for (const target of ["folder-link", "folder-link/secret", "folder-link/new", "folder-link/new/deep", "file-link"]) {
    expect(await refusals(bench, target)).toEqual(allRefused(target));
  }
  expect(await readFile(path.join(outside, "secret"), "utf8")).toBe("secret");
});

test("a link that leads nowhere is refused: writing through it would create what it names", async () => {
  const bench = await workbench();
  const outside = await outsideFolder();
  await symlink(path.join(outside, "new"), path.join(bench.folder, "dangling"));
  expect(await refusals(bench, "dangling")).toEqual(allRefused("dangling"));
  expect(await refusals(bench, "dangling/below")).toEqual(allRefused("dangling/below"));
  expect(await readdir(outside)).toEqual(["secret"]);
});

test("links and .. that stay inside the workspace are followed", async () => {
  const { context, folder } = await workbench();
  await mkdir(path.join(folder, "real"));
  await symlink("real", path.join(folder, "alias"));
  await createWriteFileTool({ host: systemHost }).execute({ path: "alias/../alias/note", content: "x" }, context);
  expect(await createReadFileTool({}).execute({ path: path.join(folder, "real", "note") }, context)).toBe("x");
  expect(await createListFilesTool().execute({ path: "alias" }, context)).toBe("note  1 bytes");
});

test("a workspace that is itself reached through a link works with either name", async () => {
  const { context, folder } = await workbench();
  await mkdir(path.join(folder, "real"));
  await symlink("real", path.join(folder, "alias"));
  const linked = { ...context, workspace: path.join(folder, "alias") };
  await createWriteFileTool({ host: systemHost }).execute(
    { path: path.join(folder, "alias", "note"), content: "x" },
    linked,
  );
  expect(await createReadFileTool({}).execute({ path: path.join(folder, "real", "note") }, linked)).toBe("x");
  expect(await createReadFileTool({}).execute({ path: "note" }, linked)).toBe("x");
});

test("a forbidden path is refused with all below it, a starred one with every name that begins so", async () => {
  const bench = await workbench();
  await mkdir(path.join(bench.folder, "spool"));
  await Promise.all(
    ["spool/a", "state.db", "state.db-wal", "spool-notes"].map((name) => writeFile(path.join(bench.folder, name), "x")),
  );
  const forbiddenPaths = [
    path.join(bench.folder, "state.db*"),
    path.join(bench.folder, "spool"),
    path.join(bench.folder, "gone", "config.yaml"),
  ];
  for (const target of [
    "state.db",
    "state.db-wal",
    "state.db-shm",
    "sub/../state.db",
    "spool",
    "spool/a",
    "spool/new",
    "gone/config.yaml",
  ]) {
    expect(await refusals(bench, target, { forbiddenPaths })).toEqual(allRefused(target));
  }
  expect(await createReadFileTool({}, { forbiddenPaths }).execute({ path: "spool-notes" }, bench.context)).toBe("x");
});

test("a forbidden file is refused under its other names: links to it, hard links, and where it is itself a link", async () => {
  const bench = await workbench();
  await mkdir(path.join(bench.folder, "data"));
  await writeFile(path.join(bench.folder, "data", "real.db"), "x");
  await symlink("data/real.db", path.join(bench.folder, "state.db"));
  await writeFile(path.join(bench.folder, "other.db-wal"), "x");
  await symlink("state.db", path.join(bench.folder, "soft"));
  await link(path.join(bench.folder, "data", "real.db"), path.join(bench.folder, "hard"));
  await link(path.join(bench.folder, "other.db-wal"), path.join(bench.folder, "hard-wal"));
  const forbiddenPaths = [path.join(bench.folder, "state.db"), path.join(bench.folder, "other.db*")];
  for (const target of ["state.db", "data/real.db", "soft", "hard", "hard-wal"]) {
    expect(await refusals(bench, target, { forbiddenPaths })).toEqual(allRefused(target));
  }
});

test("a hard link to a file that is not forbidden may be read", async () => {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "a"), "x");
  await link(path.join(folder, "a"), path.join(folder, "b"));
  const options = { forbiddenPaths: [path.join(folder, "state.db*")] };
  expect(await createReadFileTool({}, options).execute({ path: "b" }, context)).toBe("x");
});

test("a home folder sign and a NUL are refused, since nobody would expand the one or accept the other", async () => {
  const bench = await workbench();
  for (const target of ["~", "~/notes", "a\0b"]) expect(await refusals(bench, target)).toEqual(allRefused(target));
  expect(await readdir(bench.folder)).toEqual([]);
});

test("a refusal quotes the path on one line and in bounded length", async () => {
  const { context } = await workbench();
  const error = await rejection(
    createReadFileTool({}).execute({ path: `../a\nb/${"x".repeat(200)}/${"x".repeat(200)}` }, context),
  );
  expect(error.message).toMatch(/^The path "\.\.\/a\\nb\/x+\.\.\." is outside the workspace\.$/);
  expect(error.message.length).toBeLessThan(300);
});

test("a workspace that is not there is named", async () => {
  const { context, folder } = await workbench();
  const workspace = path.join(folder, "gone");
  const error = await rejection(createReadFileTool({}).execute({ path: "a" }, { ...context, workspace }));
  expect(error.message).toBe(`Could not use the workspace ${JSON.stringify(workspace)}: it does not exist.`);
});
