import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { Verdict } from "../src/verdict.ts";

const run = promisify(execFile);
const script = fileURLToPath(new URL("../run.mjs", import.meta.url));

/** On a loaded machine a ratio of CPU-bound work holds within this factor. */
const slack = 2;

/** Memory in place of a disk: what is left of a commit is its processor time. */
const memoryFolder = "/dev/shm";

const groups = {
  "stores and leases": ["lease", "progress", "append", "append-many", "load", "timers"],
  "turns and models": ["turn", "step", "stream"],
  "the loop": ["loop"],
  "tools and children": ["tool-call", "fan-out"],
  "the gateway": ["http", "sse"],
};

interface Result {
  readonly name: string;
  readonly verdicts: readonly Verdict[];
}

async function quickResults(names: readonly string[]): Promise<readonly Result[]> {
  const folder = mkdtempSync(join(tmpdir(), "tk-bench-test-"));
  try {
    const json = join(folder, "results.json");
    const inMemory = existsSync(memoryFolder) ? { BENCH_FOLDER: memoryFolder } : {};
    const env = { ...process.env, ...inMemory, BENCH_PEERS: "none" };
    await run(process.execPath, [script, ...names, "--quick", "--json", json], { env });
    return (JSON.parse(readFileSync(json, "utf8")) as { readonly results: readonly Result[] }).results;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe("the bench", () => {
  const meets = "meets every goal that processor time and counts decide, in a quick run, with slack";
  it.each(Object.entries(groups))(`${meets}: %s`, { timeout: 300_000 }, async (_group, names) => {
    const results = await quickResults(names);
    expect(results.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    const held = results.flatMap(({ name, verdicts }) =>
      verdicts.flatMap(({ goal, value }) =>
        goal.isCpuBound && value !== undefined ? [{ name, goal, value, isMet: value <= goal.atMost * slack }] : [],
      ),
    );
    // Each of the benchmarks holds at least one: a run that measured nothing is no success.
    expect(new Set(held.map(({ name }) => name))).toEqual(new Set(names));
    expect(held.filter(({ isMet }) => !isMet)).toEqual([]);
  });
});
