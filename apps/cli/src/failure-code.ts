import type { TurnFinished } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";

import { exitCode } from "./exit-code.ts";

/** Store codes that say nothing about the file: a bug above the store, or a call after its end. */
const notTheFile: ReadonlySet<string> = new Set(["STORE_CONTRACT", "STORE_CLOSED"]);

function codeOfStoreFailure(code: string): number {
  if (notTheFile.has(code)) return exitCode.failed;
  // Healthy, but another process kept its write lock: the same advice as for a busy session.
  return code === "STORE_BUSY" || code === "STORE_HELD" ? exitCode.busy : exitCode.storeUnusable;
}

const usageCode =
  /^(USAGE|OPTION_INVALID|INPUT_EMPTY|INPUT_TOO_LARGE|INPUT_ID_INVALID|SESSION_ID_INVALID|input_id_conflict|GATEWAY_UNPROTECTED)$/;

function codeOf(code: string): number {
  if (usageCode.test(code)) return exitCode.usage;
  if (code === "HOME_UNUSABLE") return exitCode.storeUnusable;
  return code.startsWith("STORE_") ? codeOfStoreFailure(code) : exitCode.failed;
}

/** The exit code of an error that ended a command. */
export function exitCodeOfError(error: unknown): number {
  return CodedError.is(error) ? codeOf(error.code) : exitCode.failed;
}

/** The exit code of a call to `run`, by how it came out and why. */
export function exitCodeOfTurn({ outcome, reason }: Pick<TurnFinished, "outcome" | "reason">): number {
  switch (outcome) {
    case "answered":
      return exitCode.ok;
    case "busy":
      return exitCode.busy;
    case "interrupted":
    case "cancelled":
      return exitCode.interrupted;
    case "queued":
      // Queued as asked is a success; queued because the waiting was stopped is not what was asked.
      return reason === undefined ? exitCode.ok : exitCode.interrupted;
    case "failed":
      return reason === undefined ? exitCode.failed : codeOf(reason);
  }
}
