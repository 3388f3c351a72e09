import { renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import type * as FileSystem from "node:fs/promises";
import path from "node:path";
import { expect, test, vi } from "vitest";
import { createReadFileTool } from "../src/index.ts";
import { rejection, workbench } from "./workbench.ts";

// Runs between the check of a path and the opening of the file.
const beforeOpen = vi.hoisted(() => ({ act: () => {} }));

vi.mock("node:fs/promises", async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>();
  return {
    ...original,
    open: (...parameters: Parameters<typeof original.open>) => {
      beforeOpen.act();
      return original.open(...parameters);
    },
  };
});

const replaced = 'Could not read "note": it was replaced in the same moment; try again.';

test("a file that is replaced between the check and the opening is not shown", async () => {
  const { context, folder } = await workbench();
  const target = path.join(folder, "note");
  writeFileSync(target, "checked");
  writeFileSync(path.join(folder, "other"), "not checked");
  beforeOpen.act = () => renameSync(path.join(folder, "other"), target);
  expect((await rejection(createReadFileTool({}).execute({ path: "note" }, context))).message).toBe(replaced);
});

test("a link that takes the file's place between the check and the opening is not followed", async () => {
  const { context, folder } = await workbench();
  const target = path.join(folder, "note");
  writeFileSync(target, "checked");
  beforeOpen.act = () => {
    rmSync(target);
    symlinkSync("/etc/passwd", target);
  };
  expect((await rejection(createReadFileTool({}).execute({ path: "note" }, context))).message).toBe(replaced);
});
