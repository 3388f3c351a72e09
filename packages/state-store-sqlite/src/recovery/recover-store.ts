import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import type { StoreErrorCode } from "@turnkeeper/state-store";
import { startOwnProcess } from "../own-process.ts";
import { codeOf, explain, storeError } from "../store-failure.ts";
import { removePartial } from "./partial-output.ts";
import type { RecoveryMessage } from "./recovery-process.ts";
import type { RecoveryRequest } from "./recovery-request.ts";
import type { RecoveryProgress, RecoveryReport } from "./recovery-report.ts";

/** Where the recovered store goes; or nowhere, to see what there is to be had. */
export type RecoveryGoal = { readonly output: string } | { readonly inspectOnly: true };

export interface RecoveryOptions {
  /** Called now and then, at least once for every stage. */
  readonly onProgress?: (progress: RecoveryProgress) => void;
  /** Ends the recovery; what was begun of the output is removed. */
  readonly signal?: AbortSignal;
}

/** Runs the process to its end; whatever it was told last is its answer. */
function answerOf(request: RecoveryRequest, { onProgress, signal }: RecoveryOptions): Promise<RecoveryReport> {
  return new Promise((settle, reject) => {
    signal?.throwIfAborted();
    const child = startOwnProcess("./recovery/recovery-process", JSON.stringify(request));
    let answer: Exclude<RecoveryMessage, { kind: "progress" }> | undefined;
    let stderr = "";
    const stop = (): void => void child.kill("SIGKILL");
    signal?.addEventListener("abort", stop, { once: true });
    child.stderr?.on("data", (chunk: Buffer) => (stderr = `${stderr}${chunk.toString()}`.slice(-4000)));
    child.on("message", (message: RecoveryMessage) => {
      if (message.kind === "progress") onProgress?.(message.progress);
      else answer = message;
    });
    child.on("error", reject);
    child.on("close", (code, killedBy) => {
      signal?.removeEventListener("abort", stop);
      if (answer?.kind === "recovered") settle(answer.report);
      else if (signal?.aborted) reject(signal.reason as Error);
      else if (answer?.code !== undefined)
        reject(storeError(answer.code as StoreErrorCode, answer.message, answer.context));
      else
        reject(
          new Error(
            `The process that recovered ${request.source} ended with ${killedBy ?? code}: ${answer?.message ?? stderr}`,
          ),
        );
    });
  });
}

/** What was begun goes again, unless it is another recovery's: the process tells its progress once the file is its own. */
async function madeWhole(request: RecoveryRequest, options: RecoveryOptions): Promise<RecoveryReport> {
  let hasBegun = false;
  const onProgress = (progress: RecoveryProgress): void => {
    hasBegun = true;
    options.onProgress?.(progress);
  };
  try {
    return await answerOf(request, { ...options, onProgress });
  } catch (error) {
    if (hasBegun) removePartial(request.output);
    throw error;
  }
}

function realPathOf(path: string): string {
  const wanted = resolve(path);
  try {
    return realpathSync(wanted);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    return join(realpathSync(dirname(wanted)), basename(wanted));
  }
}

/**
 * Reads a damaged store page by page and makes a new one of every row that is intact, in a process of its own; the
 * source is read and never written. With `inspectOnly` nothing stays but the report. The output (0600) is made whole
 * before it has its name, and never over a file that is there. A fencing token is never lower than any that was seen;
 * pending inputs stay pending; a turn that ran is settled by the next grant, as after a crash.
 *
 * Rejects with `STORE_BUSY` while a process has the source open, `STORE_UNAVAILABLE` for a path that cannot be read or
 * an output that exists, `STORE_FULL`, `STORE_CORRUPT` when not one row is found, or the reason of `signal`; then no
 * output was made. Safe to repeat.
 */
export async function recoverStore(
  source: string,
  goal: RecoveryGoal,
  options: RecoveryOptions = {},
): Promise<RecoveryReport> {
  let folder: string | undefined;
  try {
    const path = realPathOf(source);
    if ("inspectOnly" in goal) folder = mkdtempSync(join(realpathSync(tmpdir()), "turnkeeper-inspect-"));
    const output = "output" in goal ? realPathOf(goal.output) : join(folder ?? "", "state.db");
    const report = await madeWhole({ source: path, output }, options);
    if (folder === undefined) return report;
    const { output: _gone, ...kept } = report;
    return kept;
  } catch (error) {
    throw explain(error, { attempt: "recover", path: source, phase: "read" });
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}
