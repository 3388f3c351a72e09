import path from "node:path";
import type { Mutation } from "./mutation.ts";
import { runTests, testTimeMaxMs } from "./test-run.ts";
import type { TestRun } from "./test-run.ts";
import { WorkspaceCopy } from "./workspace-copy.ts";

export interface Verdict {
  readonly mutation: Mutation;
  readonly isCaught: boolean;
  /** The test that caught it, or why nothing did. */
  readonly told: string;
  readonly testMs: number;
}

export interface SweepOptions {
  readonly root: string;
  readonly laneCount: number;
  readonly onVerdict: (verdict: Verdict) => void;
  readonly signal?: AbortSignal;
}

function verdictOn(mutation: Mutation, run: TestRun): Verdict {
  if (run.kind === "passed") return { mutation, isCaught: false, told: "every test passed", testMs: 0 };
  if (run.kind === "no-verdict") return { mutation, isCaught: false, told: run.why, testMs: 0 };
  const isCaught = run.testMs <= testTimeMaxMs;
  return { mutation, isCaught, told: isCaught ? run.title : `only slowly: ${run.title}`, testMs: run.testMs };
}

/** The named tests must pass while every guard stands, or their failing would say nothing. */
async function checkWhole(copy: WorkspaceCopy, mutations: readonly Mutation[], signal?: AbortSignal): Promise<void> {
  for (const project of new Set(mutations.map((mutation) => mutation.project))) {
    const own = mutations.filter((mutation) => mutation.project === project);
    for (const group of [own.filter(({ only }) => only === undefined), own.filter(({ only }) => only !== undefined)]) {
      if (group.length === 0) continue;
      const files = [...new Set(group.flatMap(({ tests }) => tests))];
      const only = [...new Set(group.flatMap((mutation) => mutation.only ?? []))];
      const run = await runTests(path.join(copy.folder, group[0]?.folder ?? ""), files, { only, signal });
      if (run.kind === "passed") continue;
      const told = run.kind === "failed" ? run.title : run.why;
      throw new Error(`The tests of ${project} do not pass with every guard in place: ${told}`);
    }
  }
}

/** Takes one guard away at a time, each in a copy of the repository, and tells which of them their tests missed. */
export async function sweep(mutations: readonly Mutation[], options: SweepOptions): Promise<readonly Verdict[]> {
  const { root, laneCount, onVerdict, signal } = options;
  const waiting = [...mutations];
  const verdicts: Verdict[] = [];
  const lane = async (copy: WorkspaceCopy): Promise<void> => {
    for (let mutation = waiting.shift(); mutation && !signal?.aborted; mutation = waiting.shift()) {
      const { tests, only } = mutation;
      const folder = path.join(copy.folder, mutation.folder);
      const options = { only: only === undefined ? [] : [only], signal };
      const verdict = verdictOn(mutation, await copy.without(mutation, () => runTests(folder, tests, options)));
      verdicts.push(verdict);
      onVerdict(verdict);
    }
  };
  const copies = Array.from({ length: laneCount }, () => new WorkspaceCopy(root));
  try {
    if (copies[0]) await checkWhole(copies[0], mutations, signal);
    await Promise.all(copies.map(lane));
    return verdicts;
  } finally {
    for (const copy of copies) copy[Symbol.dispose]();
  }
}
