import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { examplesIn, pagesOf } from "../src/example.ts";
import { openWorkbench } from "../src/workbench.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const fence = "```";

function page(...blocks: readonly string[]): string {
  return ["# P", "## Example", ...blocks].join("\n");
}

describe("the examples of a page", () => {
  it("run under Example, with the output that the next text block promises", () => {
    const markdown = page(
      `${fence}ts`,
      'console.log("a");',
      fence,
      "It prints:",
      `${fence}text`,
      "a",
      fence,
      "## API",
      `${fence}ts`,
      "export const b = 1;",
      fence,
    );
    expect(examplesIn("packages/p/README.md", markdown)).toEqual({
      examples: [
        { page: "packages/p/README.md", line: 3, text: 'console.log("a");', mode: "run", output: "a" },
        { page: "packages/p/README.md", line: 11, text: "export const b = 1;", mode: "check" },
      ],
      badMarks: [],
    });
  });

  it("run on every page of a package's docs, under any heading", () => {
    const markdown = ["# Page", "## Anything", `${fence}ts`, 'console.log("a");', fence].join("\n");
    const modeAt = (name: string): unknown => examplesIn(name, markdown).examples.map(({ mode }) => mode);
    expect(modeAt("packages/p/docs/guide.md")).toEqual(["run"]);
    expect(modeAt("packages/p/README.md")).toEqual(["check"]);
    expect(pagesOf(root)).toEqual(
      expect.arrayContaining(["README.md", "packages/agent-core/README.md", "packages/agent-core/docs/ai-sdk.md"]),
    );
  });

  it("are left alone only with a reason, and are not hidden under another name", () => {
    const markdown = page(
      `${fence}ts no-run: needs a key`,
      fence,
      `${fence}ts no-check: an excerpt`,
      fence,
      `${fence}ts no-run`,
      fence,
      `${fence}typescript`,
      fence,
      `${fence}sh`,
      fence,
    );
    const { examples, badMarks } = examplesIn("README.md", markdown);
    expect(examples.map(({ mode }) => mode)).toEqual(["check", "sketch", "run"]);
    expect(badMarks.map(({ line, problem }) => [line, problem.slice(0, 30)])).toEqual([
      [7, 'is marked "ts no-run"; write "'],
      [9, 'is marked "typescript"; write '],
    ]);
  });
});

describe("the workbench", () => {
  let root = "";
  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), "turnkeeper-workbench-"));
    writeFileSync(path.join(root, "package.json"), '{ "type": "module" }');
    writeFileSync(
      path.join(root, "tsconfig.base.json"),
      JSON.stringify({
        compilerOptions: {
          strict: true,
          module: "NodeNext",
          target: "ES2022",
          lib: ["ES2023"],
          types: ["node"],
          moduleDetection: "force",
        },
      }),
    );
    mkdirSync(path.join(root, "packages/p"), { recursive: true });
    symlinkSync(fileURLToPath(new URL("../../../node_modules", import.meta.url)), path.join(root, "node_modules"));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const example = (text: string) => examplesIn("packages/p/README.md", page(`${fence}ts`, text, fence)).examples;

  it("tells an error of types by the page and its line", { timeout: 60_000 }, async () => {
    const findings = await openWorkbench(root, example('const a: number = "one";\nconsole.log(a);')).check();
    expect(findings).toHaveLength(1);
    expect(findings[0]).toMatch(/^packages\/p\/README\.md\(4,7\): error TS2322/);
  });

  it("runs what compiles, and tells how it ended", { timeout: 60_000 }, async () => {
    const [good] = example('const a: string = "one";\nconsole.log(a);');
    const [bad] = example('throw new Error("no");');
    if (!good || !bad) throw new Error("the page has no example");
    const workbench = openWorkbench(root, [good]);
    expect(await workbench.check()).toEqual([]);
    expect(await workbench.run(good)).toEqual({ code: 0, stdout: "one\n", stderr: "" });
    const failed = await openWorkbench(root, [bad]).run(bad);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain("Error: no");
  });
});
