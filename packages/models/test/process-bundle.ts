import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

export interface ProcessBundle {
  readonly script: string;
  remove(): void;
}

/** A program beside this file as one JavaScript file, from source: twelve of it start in the time of one with a loader. */
export async function bundleProcess(program: string): Promise<ProcessBundle> {
  const folder = mkdtempSync(path.join(tmpdir(), "turnkeeper-program-"));
  mkdirSync(path.join(folder, "node_modules"));
  const here = createRequire(import.meta.url);
  const store = createRequire(here.resolve("@turnkeeper/state-store-sqlite/package.json"));
  const packages = { "better-sqlite3": store, undici: here };
  for (const [name, from] of Object.entries(packages)) {
    const target = path.dirname(from.resolve(`${name}/package.json`));
    symlinkSync(target, path.join(folder, "node_modules", name));
  }
  const conditions = ["@turnkeeper/source", "node"];
  await build({
    configFile: false,
    logLevel: "error",
    root: fileURLToPath(new URL("..", import.meta.url)),
    resolve: { conditions },
    ssr: {
      resolve: { conditions },
      noExternal: /^@turnkeeper\//,
      external: [...Object.keys(packages), "@ai-sdk/anthropic", "@ai-sdk/openai", "@ai-sdk/openai-compatible"],
    },
    build: {
      ssr: fileURLToPath(new URL(program, import.meta.url)),
      outDir: path.join(folder, "dist"),
      target: "node20",
      minify: false,
      rollupOptions: { output: { entryFileNames: "program.mjs" } },
    },
  });
  return {
    script: path.join(folder, "dist", "program.mjs"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
