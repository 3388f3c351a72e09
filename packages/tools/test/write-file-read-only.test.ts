import { readdir, readFile, writeFile } from "node:fs/promises";
import type * as FileSystem from "node:fs/promises";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { expect, test, vi } from "vitest";
import { createWriteFileTool } from "../src/index.ts";
import { rejection, workbench } from "./workbench.ts";

// Root may write everything, so the kernel's answer to an ordinary user is given here.
vi.mock("node:fs/promises", async (importOriginal) => ({
  ...(await importOriginal<typeof FileSystem>()),
  access: () => Promise.reject(Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" })),
}));

test("a file that was made read-only is left alone, though its folder would allow to replace it", async () => {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "fixed"), "old");
  const error = await rejection(
    createWriteFileTool({ host: systemHost }).execute({ path: "fixed", content: "new" }, context),
  );
  expect(error.message).toBe('Could not write "fixed": permission denied.');
  expect(await readFile(path.join(folder, "fixed"), "utf8")).toBe("old");
  expect(await readdir(folder)).toEqual(["fixed"]);
});
