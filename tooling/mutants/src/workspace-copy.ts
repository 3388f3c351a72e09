import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { mutated } from "./mutation.ts";
import type { Mutation } from "./mutation.ts";

/** What a test needs of the repository. Links between packages are relative, so in the copy they lead to the copy. */
const copied = ["packages", "apps/gateway", "tooling/postgres-server", "tooling/vitest-config", "tsconfig.base.json"];
const leftOut = new Set(["dist", ".tstest", ".turbo", ".vite", ".vite-temp", "coverage"]);

/** A copy of the packages under a temporary folder, so that the checkout is never without a guard. */
export class WorkspaceCopy {
  readonly folder: string;

  constructor(root: string) {
    this.folder = mkdtempSync(path.join(tmpdir(), "turnkeeper-mutants-"));
    for (const part of copied) {
      cpSync(path.join(root, part), path.join(this.folder, part), {
        recursive: true,
        verbatimSymlinks: true,
        filter: (source) => !leftOut.has(path.basename(source)),
      });
    }
    symlinkSync(path.join(root, "node_modules"), path.join(this.folder, "node_modules"));
  }

  /** Runs `body` while the copy is without this guard. */
  async without<Result>(mutation: Mutation, body: () => Promise<Result>): Promise<Result> {
    const file = path.join(this.folder, mutation.file);
    const text = readFileSync(file, "utf8");
    writeFileSync(file, mutated(text, mutation));
    try {
      return await body();
    } finally {
      writeFileSync(file, text);
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
