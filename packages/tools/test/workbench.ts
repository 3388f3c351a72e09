import { EventEmitter, once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { ToolContext } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { onTestFinished } from "vitest";
import { killMarkedProcesses } from "../src/index.ts";
import type { ShellToolDeps } from "../src/index.ts";

/** Any variable does; the turn that runs the call chooses it. */
export const turnMarkerName = "TURNKEEPER_TURN";

/** What the tools of a test get; its environment is that of the test. */
export const deps: ShellToolDeps = { host: systemHost, environment: process.env };

export const hasProcessTable: boolean = existsSync("/proc/self/environ");

export interface Workbench {
  /** Real path of an empty folder, removed after the test. */
  readonly folder: string;
  readonly context: ToolContext;
  readonly turnId: string;
  stop(): void;
  stopHard(): void;
  /** Settles when the call says that it moved, for instance when a command prints. */
  readonly moved: Promise<void>;
  readonly moveCount: () => number;
}

/** A workspace and a turn around one or more calls; whatever they leave running is ended after the test. */
export async function workbench(): Promise<Workbench> {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "turnkeeper-tools-")));
  const turnId = systemHost.random.id();
  const soft = new AbortController();
  const hard = new AbortController();
  let moveCount = 0;
  const clock = new EventEmitter();
  const moved = once(clock, "move").then(() => undefined);
  onTestFinished(async () => {
    await killMarkedProcesses({ host: systemHost }, { [turnMarkerName]: turnId }, { graceMs: 0 });
    await rm(folder, { recursive: true, force: true });
  });
  return {
    folder,
    turnId,
    moved,
    moveCount: () => moveCount,
    stop: () => soft.abort(new Error("user-stop")),
    stopHard: () => {
      hard.abort(new Error("user-stop"));
      soft.abort(new Error("user-stop"));
    },
    context: {
      sessionId: "s",
      turnId,
      callId: "call-1",
      workspace: folder,
      signal: soft.signal,
      hardSignal: hard.signal,
      progress: () => {
        moveCount += 1;
        clock.emit("move");
      },
      processMarker: { [turnMarkerName]: turnId },
    },
  };
}

/** Whether the process still runs; one that ended and was not yet collected does not. */
export function isRunning(processId: number): boolean {
  try {
    const stat = readFileSync(`/proc/${processId}/stat`, "latin1");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

/** The process ids that a command wrote into a file of the workspace, one a line. */
export async function processIdsIn(folder: string, name: string): Promise<number[]> {
  return (await readFile(path.join(folder, name), "utf8")).trim().split("\n").map(Number);
}

/** What a promise rejects with; fails when it does not. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("error" in outcome && outcome.error instanceof Error) return outcome.error;
  throw new Error(`Expected a rejection, got ${JSON.stringify(outcome)}.`);
}
