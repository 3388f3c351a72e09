import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { examplesIn, pagesOf } from "../src/example.ts";
import { openWorkbench } from "../src/workbench.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const pages = pagesOf(root)
  .filter((page) => existsSync(path.join(root, page)))
  .map((page) => ({ page, ...examplesIn(page, readFileSync(path.join(root, page), "utf8")) }));
const examples = pages.flatMap((page) => page.examples).filter(({ mode }) => mode !== "sketch");
const runnable = examples.filter(({ mode }) => mode === "run");
const workbench = openWorkbench(root, examples);

describe("the documentation", () => {
  it("marks its TypeScript blocks so that they can be checked, or says why not", () => {
    expect(
      pages.flatMap(({ badMarks }) => badMarks).map(({ page, line, problem }) => `${page}:${line}: ${problem}`),
    ).toEqual([]);
  });

  it("has an example to run in every package", () => {
    const readmes = pages.filter(({ page }) => /^packages\/[^/]+\/README\.md$/.test(page));
    const without = readmes.filter((page) => page.examples.every(({ mode }) => mode !== "run"));
    expect(without.map(({ page }) => `${page}: no ts block under "## Example"`)).toEqual([]);
  });

  it("compiles, every example of it", { timeout: 120_000 }, async () => {
    expect(await workbench.check()).toEqual([]);
  });
});

describe.concurrent("an example", () => {
  it.each(runnable.map((example) => [`${example.page}:${example.line}`, example] as const))(
    "%s runs, and prints what its page says",
    { timeout: 90_000 },
    async (_where, example) => {
      const { code, stdout, stderr } = await workbench.run(example);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).not.toBe("");
      expect(stdout.trimEnd()).toBe((example.output ?? stdout).trimEnd());
    },
  );
});
