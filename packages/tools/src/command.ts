/**
 * Runs one command line in a session of its own and answers when it is over.
 *
 * Over means: the shell exited and its output was drained (what a background process holds open is waited for only
 * briefly), or it was stopped, by its time limit or the turn, and its processes were ended.
 */

import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import type { Readable } from "node:stream";
import type { ProcessMarker } from "@turnkeeper/agent-core";
import { messageOf } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { CapturedOutput } from "./captured-output.ts";
import { toolError } from "./errors.ts";
import { quoted, systemCodeOf } from "./file-error.ts";
import { endProcesses } from "./kill-ladder.ts";
import type { KillReceipt } from "./kill-ladder.ts";

export interface CommandRequest {
  readonly command: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Finds this command's processes and no other's. */
  readonly marker: ProcessMarker;
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly drainMs: number;
  readonly outputBytesMax: number;
  readonly signal: AbortSignal;
  readonly hardSignal: AbortSignal;
  onOutput(): void;
}

export interface CommandExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type StopCause = "timeout" | "interrupt";

export type CommandResult =
  | {
      readonly kind: "exited";
      readonly output: string;
      readonly exit: CommandExit;
      /** A process that the command left behind still holds the output open. */
      readonly heldOpen: boolean;
    }
  | { readonly kind: "stopped"; readonly output: string; readonly by: StopCause; readonly receipt: KillReceipt };

type OutputProcess = ChildProcessByStdio<null, Readable, null>;

// One stream for both outputs keeps them in the order in which they were written; the shell that arranges it replaces
// itself, so the command is the leader of its session and its exit status is its own.
const launcher = 'command -v bash >/dev/null 2>&1 && exec bash -c "$1" 2>&1; exec /bin/sh -c "$1" 2>&1';

export async function runCommand({ host }: { readonly host: Host }, request: CommandRequest): Promise<CommandResult> {
  const child = await start(request);
  const output = new CapturedOutput(request.outputBytesMax);
  child.stdout.on("data", (chunk: Buffer) => {
    output.push(chunk);
    request.onOutput();
  });
  // Output that cannot be read further is output that has ended: its "close" follows.
  child.stdout.on("error", () => undefined);
  const exited = new Promise<CommandExit>((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
  const drained = new Promise<true>((resolve) => child.stdout.once("close", () => resolve(true)));
  const stop = stopOf(host, request);
  try {
    const first = await Promise.race([exited, stop.cause]);
    if (typeof first === "object") {
      const heldOpen = !(await within(host, request.drainMs, drained));
      return { kind: "exited", output: output.text(), exit: first, heldOpen };
    }
    const target = { marker: request.marker, ...(child.pid === undefined ? {} : { groupId: child.pid }) };
    const receipt = await endProcesses({ host }, target, request);
    await within(host, request.drainMs, Promise.all([exited, drained]));
    return { kind: "stopped", output: output.text(), by: first, receipt };
  } finally {
    stop.dispose();
    // Whoever still writes gets EPIPE from here on; nothing of this call stays in our process.
    child.stdout.destroy();
    child.unref();
  }
}

/** Answers once the shell runs. */
function start(request: CommandRequest): Promise<OutputProcess> {
  return new Promise((resolve, reject) => {
    const failed = (error: unknown): void => {
      const where = `in ${quoted(request.folder)}`;
      reject(toolError("COMMAND_NOT_STARTED", `The command could not be started ${where}: ${reasonOf(error)}.`, error));
    };
    try {
      const child = spawn("/bin/sh", ["-c", launcher, "turnkeeper", request.command], {
        cwd: request.folder,
        env: request.environment,
        stdio: ["ignore", "pipe", "ignore"],
        detached: true,
      });
      child.once("error", failed);
      child.once("spawn", () => resolve(child));
    } catch (error) {
      failed(error);
    }
  });
}

function reasonOf(error: unknown): string {
  switch (systemCodeOf(error)) {
    case "E2BIG":
      return "it is too long; write it to a file and run that";
    case "ERR_INVALID_ARG_VALUE":
      return "it contains a NUL character";
    case "ENOENT":
    case "ENOTDIR":
      return "there is no such folder, or no /bin/sh";
    case "EAGAIN":
    case "EMFILE":
    case "ENFILE":
      return "the machine is out of processes or open files; try again later";
    default:
      return messageOf(error);
  }
}

/** What stops the command from outside, as a promise that stays open where nothing does. */
function stopOf(host: Host, request: CommandRequest): { readonly cause: Promise<StopCause>; dispose(): void } {
  const disposers: (() => void)[] = [];
  const cause = new Promise<StopCause>((resolve) => {
    const interrupt = (): void => resolve("interrupt");
    disposers.push(host.timers.after(request.timeoutMs, () => resolve("timeout")));
    for (const signal of [request.signal, request.hardSignal]) {
      signal.addEventListener("abort", interrupt);
      disposers.push(() => signal.removeEventListener("abort", interrupt));
      if (signal.aborted) interrupt();
    }
  });
  return { cause, dispose: () => disposers.forEach((dispose) => dispose()) };
}

/** The promise's value when it comes within `ms`, else undefined. */
function within<Value>(host: Host, ms: number, promise: Promise<Value>): Promise<Value | undefined> {
  return new Promise((resolve) => {
    let cancel = host.timers.after(ms, () => {
      // A late timer runs before data that already waits: let that in first.
      cancel = host.timers.afterPoll(() => resolve(undefined));
    });
    void promise.then((value) => {
      cancel();
      return resolve(value);
    });
  });
}
