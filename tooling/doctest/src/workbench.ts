import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Example } from "./example.ts";
import { runProcess } from "./process.ts";
import type { ProcessOutcome } from "./process.ts";

/** Where examples of the root's pages stand while they are checked: a project that depends on every package. */
const rootPagesFolder = "tooling/doctest";

/**
 * The module of an example, inside the project whose page it stands on, so that its imports resolve as they would
 * for somebody who works there. Git ignores the folder.
 */
function moduleOf({ page, line }: Example): string {
  const folder = page.includes("/") ? page.split("/", 2).join("/") : rootPagesFolder;
  const name = path.posix.basename(page, ".md").toLowerCase();
  return `${folder}/.tstest/doctest/${name}-${line}.ts`;
}

/** Examples written out as modules: one compiler run checks them all, one process runs each. */
export interface Workbench {
  /** What the compiler says, with the pages' own names and lines; empty when all is well. */
  check(): Promise<readonly string[]>;
  run(example: Example): Promise<ProcessOutcome>;
}

/** Writes the examples below `root`, replacing what an earlier run left there. */
export function openWorkbench(root: string, examples: readonly Example[]): Workbench {
  const modules = new Map(examples.map((example) => [example, moduleOf(example)]));
  const folders = new Set([...modules.values()].map((file) => path.dirname(file)));
  for (const folder of folders) {
    rmSync(path.join(root, folder), { recursive: true, force: true });
    mkdirSync(path.join(root, folder), { recursive: true });
  }
  for (const [example, file] of modules) {
    // As many lines before the block as on the page, so that an error's line is the page's line.
    writeFileSync(path.join(root, file), `${"\n".repeat(example.line)}${example.text}\n`);
  }
  return {
    async check() {
      if (modules.size === 0) return [];
      const folder = path.join(root, rootPagesFolder, ".tstest");
      const config = path.join(folder, "examples.tsconfig.json");
      const compilerOptions = {
        noEmit: true,
        composite: false,
        incremental: false,
        declaration: false,
        declarationMap: false,
        isolatedDeclarations: false,
      };
      const files = [...modules.values()].map((file) => path.relative(folder, path.join(root, file)));
      mkdirSync(folder, { recursive: true });
      writeFileSync(config, JSON.stringify({ extends: path.join(root, "tsconfig.base.json"), compilerOptions, files }));
      const compiler = path.join(
        path.dirname(fileURLToPath(import.meta.resolve("typescript-native/package.json"))),
        "bin",
        "tsc",
      );
      const { code, stdout, stderr } = await runProcess(
        process.execPath,
        [compiler, "--pretty", "false", "-p", config],
        { cwd: root, timeoutMs: 120_000 },
      );
      if (code === 0) return [];
      const pages = new Map([...modules].map(([{ page }, file]) => [file, page]));
      const lines = `${stdout}${stderr}`.split("\n").filter((line) => line.trim() !== "");
      return lines.map((line) => line.replace(/^[^(\s]+(?=\()/, (file) => pages.get(file) ?? file));
    },
    async run(example) {
      const file = modules.get(example);
      if (file === undefined)
        throw new Error(`The example at ${example.page}:${example.line} is not on this workbench.`);
      // A folder of its own to stand in: an example may write files.
      const cwd = mkdtempSync(path.join(tmpdir(), "turnkeeper-doctest-"));
      try {
        const args = ["--import", import.meta.resolve("tsx"), "--conditions=@turnkeeper/source", path.join(root, file)];
        return await runProcess(process.execPath, args, {
          cwd,
          env: { PATH: process.env["PATH"], HOME: cwd, NO_COLOR: "1" },
          timeoutMs: 60_000,
        });
      } finally {
        rmSync(cwd, { recursive: true, force: true });
      }
    },
  };
}
