import { existsSync } from "node:fs";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

/** Where the kernel keeps files in memory: a sync costs nothing there, and kill -9 loses nothing either. */
const inMemory = "/dev/shm";

/** The worker as one JavaScript file: it starts ten times faster than from source, and nothing of a loader is traced. */
export interface WorkerBundle {
  readonly script: string;
  /** For stores; goes with `remove`. */
  readonly folder: string;
  remove(): Promise<void>;
}

/** Lays the bundle out as the published package is, since the store finds its migrations beside its code. */
export async function bundleWorker(): Promise<WorkerBundle> {
  const folder = await mkdtemp(join(existsSync(inMemory) ? inMemory : tmpdir(), "store-faults-"));
  const storeFolder = dirname(createRequire(import.meta.url).resolve("@turnkeeper/state-store-sqlite/package.json"));
  await symlink(join(storeFolder, "migrations"), join(folder, "migrations"));
  await symlink(fileURLToPath(new URL("../node_modules", import.meta.url)), join(folder, "node_modules"));
  const conditions = ["@turnkeeper/source", "node"];
  await build({
    configFile: false,
    logLevel: "error",
    root: fileURLToPath(new URL("..", import.meta.url)),
    resolve: { conditions },
    ssr: { resolve: { conditions }, noExternal: /^@turnkeeper\//, external: ["better-sqlite3"] },
    build: {
      ssr: fileURLToPath(new URL("worker.ts", import.meta.url)),
      outDir: join(folder, "dist"),
      target: "node20",
      minify: false,
      rollupOptions: { output: { entryFileNames: "worker.mjs" } },
    },
  });
  return { script: join(folder, "dist", "worker.mjs"), folder, remove: () => rm(folder, { recursive: true }) };
}
