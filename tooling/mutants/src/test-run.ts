import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

/** How a run of tests came out. Only a failed test is a failure: a file that does not even load says nothing. */
export type TestRun =
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly title: string; readonly testMs: number }
  | { readonly kind: "no-verdict"; readonly why: string };

/** Only what is read of vitest's JSON report. */
interface Report {
  readonly testResults: readonly {
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly duration?: number | null;
    }[];
  }[];
}

/** The test that notices a missing guard must need no longer; what its file runs before it is not counted. */
export const testTimeMaxMs = 10_000;
/** A test that hangs for want of the guard has noticed it too, within the bound; one that is merely slow has not. */
const hangMs = 8_000;
/** Start, imports and everything else around the tests of one file, on a machine that is busy. */
const wallTimeMaxMs = 120_000;

const vitest = path.join(path.dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");

/** The environment without what a vitest around this one has set. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
}

function verdictOf({ testResults }: Report): TestRun {
  for (const { assertionResults } of testResults) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    if (failed) return { kind: "failed", title: failed.fullName, testMs: failed.duration ?? 0 };
  }
  const unloaded = testResults.find(({ status }) => status !== "passed");
  if (unloaded) return { kind: "no-verdict", why: unloaded.message || "a test file did not load" };
  const ranAny = testResults.some(({ assertionResults }) => assertionResults.some(({ status }) => status === "passed"));
  if (!ranAny) return { kind: "no-verdict", why: "no test ran" };
  return { kind: "passed" };
}

export interface TestRunOptions {
  /** Runs only the cases whose title begins so; empty: all. */
  readonly only?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** Runs test files of the package in `folder` with a vitest of its own, to the first failure. */
export async function runTests(
  folder: string,
  files: readonly string[],
  { only = [], signal }: TestRunOptions = {},
): Promise<TestRun> {
  const missing = files.find((file) => !existsSync(path.join(folder, file)));
  if (missing !== undefined) return { kind: "no-verdict", why: `there is no ${missing}` };
  const output = path.join(folder, "mutant-report.json");
  rmSync(output, { force: true });
  const options = ["--bail=1", "--no-file-parallelism", `--testTimeout=${hangMs}`];
  // The name that vitest compares begins with those of the suites around the case.
  if (only.length > 0)
    options.push(`--testNamePattern=(^| )(${only.map((title) => title.replaceAll(/[^\w ]/g, "\\$&")).join("|")})`);
  const args = [vitest, "run", "--root", folder, ...options, "--reporter=json", `--outputFile=${output}`, ...files];
  // A group of its own, so that a mutant that never ends goes with all its processes.
  const child = spawn(process.execPath, args, { cwd: folder, env: environment(), stdio: "ignore", detached: true });
  const kill = (): void => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, "SIGKILL");
  };
  const wallMs = wallTimeMaxMs * files.length;
  const timer = setTimeout(kill, wallMs);
  signal?.addEventListener("abort", kill, { once: true });
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", resolve);
  });
  clearTimeout(timer);
  signal?.removeEventListener("abort", kill);
  if (exitCode === null) return { kind: "no-verdict", why: `no end within ${wallMs / 1_000} s` };
  if (!existsSync(output)) return { kind: "no-verdict", why: `vitest exited with ${exitCode} and no report` };
  const run = verdictOf(JSON.parse(readFileSync(output, "utf8")) as Report);
  if (run.kind === "passed" && exitCode !== 0)
    return { kind: "no-verdict", why: `every test passed, and vitest exited with ${exitCode}` };
  return run;
}
