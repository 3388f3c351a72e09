import { spawnSync } from "node:child_process";
import { afterAll, beforeAll } from "vitest";
import { bundleWorker } from "../src/worker-bundle.ts";
import type { WorkerBundle } from "../src/worker-bundle.ts";

/** Why nothing can be traced here; absent where it can. */
export function whyNoTracing(): string | undefined {
  const { error, status, stderr } = spawnSync("strace", ["-qq", "-e", "trace=none", "true"], { encoding: "utf8" });
  if (error) return "strace is not installed";
  return status === 0 ? undefined : `strace may not trace here: ${stderr.trim()}`;
}

/** Bundles the worker once for all tests of a file, and removes it with every store after them. */
export function usesWorker(): () => WorkerBundle {
  let bundle: WorkerBundle | undefined;
  beforeAll(async () => {
    bundle = await bundleWorker();
  }, 120_000);
  afterAll(() => bundle?.remove());
  return () => {
    if (!bundle) throw new Error("The worker was not bundled.");
    return bundle;
  };
}
