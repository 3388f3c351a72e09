import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Experiment } from "./experiment.ts";

const models = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "models");
/** Deeper than any run of the models; a search that meets it is not exhaustive, and is refused below. */
const depthMax = 200_000;
/** Room for two million states, more than there are; the default takes longer to lay out than to fill. */
const hashBits = 21;
const timeMaxMs = 240_000;

export interface Proof {
  /** Whether it came out as it must: proven as it is, refuted with a race in it. */
  readonly isAsExpected: boolean;
  readonly told: string;
}

function answers(command: string, args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** Why nothing can be verified here; absent where it can. */
export function missingTools(): string | undefined {
  const missing = [...(answers("spin", ["-V"]) ? [] : ["spin"]), ...(answers("cc", ["--version"]) ? [] : ["cc"])];
  return missing.length === 0
    ? undefined
    : `${missing.join(" and ")} not found; tooling/spin/README.md says how to get it`;
}

function run(folder: string, command: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    timeout: timeMaxMs,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error) throw error;
  // pan ends with 0 also when it has found an error; whatever else fails has failed to verify anything.
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
}

/** What spin and the verifier it makes say of one experiment. */
function verified({ model, race, isLiveness }: Experiment): string {
  const folder = mkdtempSync(path.join(tmpdir(), "turnkeeper-spin-"));
  try {
    run(folder, "spin", ["-a", ...(race === undefined ? [] : [`-D${race}`]), path.join(models, `${model}.pml`)]);
    const safety = ["-DSAFETY", "-DNOFAIR", ...(model === "claim" ? ["-DNOCLAIM"] : [])];
    // Compiling takes most of the time: only a search of the whole lease is long enough to be worth an optimiser.
    run(folder, "cc", ["-O0", ...(isLiveness ? [] : safety), "-o", "pan", "pan.c"]);
    // Weak fairness: whoever can always go on does some time. Without it nobody ever promises anything.
    return run(folder, path.join(folder, "pan"), [
      `-m${depthMax}`,
      `-w${hashBits}`,
      ...(isLiveness ? ["-a", "-f"] : []),
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** States of our processes that no run reaches; a model that never gets there proves nothing about it. */
function unreached(output: string): readonly string[] {
  return output.split("unreached in ").flatMap((part) => {
    const [title = "", ...lines] = part.split("\n");
    if (!title.startsWith("proctype ")) return [];
    return lines.filter((line) => /^\t\S+:\d+, state/.test(line)).map((line) => `${title}: ${line.trim()}`);
  });
}

/** What the verifier's own words mean for this experiment. */
export function judge(experiment: Experiment, output: string): Proof {
  const errorCount = /errors: (\d+)/.exec(output)?.[1];
  if (errorCount === undefined) return { isAsExpected: false, told: `no result:\n${output}` };
  const error = output.split("\n").find((line) => line.startsWith("pan:1: "));
  if (experiment.finds !== undefined) {
    const isFound = errorCount !== "0" && error?.includes(experiment.finds) === true;
    return { isAsExpected: isFound, told: isFound ? `found: ${error}` : `not found: ${error ?? "no error"}` };
  }
  if (errorCount !== "0") return { isAsExpected: false, told: `refuted: ${error ?? output}` };
  if (/search depth too small|not completed|out of memory/i.test(output))
    return { isAsExpected: false, told: `not exhaustive:\n${output}` };
  const missed = unreached(output);
  if (missed.length > 0) return { isAsExpected: false, told: `proves too little: ${missed.join("; ")}` };
  return { isAsExpected: true, told: `proven in ${/(\S+) states, stored/.exec(output)?.[1] ?? "?"} states` };
}

/** Proves the protocol, or finds the race that was put back. Throws where spin or the compiler fails. */
export function verify(experiment: Experiment): Proof {
  return judge(experiment, verified(experiment));
}
