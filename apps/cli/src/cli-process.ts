import { homedir } from "node:os";
import { failureLine } from "./cli-error.ts";
import { complain } from "./command-io.ts";
import type { CommandIo } from "./command-io.ts";
import { exitCode, exitCodeOfError } from "./exit-code.ts";
import { Output } from "./output.ts";
import { runCommandLine } from "./program.ts";

function workingFolderOf(process: NodeJS.Process): string {
  try {
    return process.cwd();
  } catch {
    // The folder was deleted under the shell; whatever needs it will say so.
    return "/";
  }
}

function ioOf(process: NodeJS.Process): CommandIo {
  return {
    stdin: process.stdin,
    stdout: new Output(process.stdout, process.env),
    stderr: new Output(process.stderr, process.env),
    environment: process.env,
    workingFolder: workingFolderOf(process),
    userFolder: process.env["HOME"] ?? homedir(),
    onSignal: (signal, listener) => {
      process.on(signal, listener);
      return () => process.removeListener(signal, listener);
    },
    exitNow: (code) => process.exit(code),
  };
}

/** Runs one command line in this process and ends it: output drained, exit code as the README's table says. */
export async function runProcess(process: NodeJS.Process): Promise<void> {
  const argv = process.argv.slice(2);
  const io = Object.freeze(ioOf(process));
  const isDebug = argv.includes("--debug");
  const tell = (error: unknown): void => {
    complain(io, failureLine(error));
    if (isDebug && error instanceof Error) io.stderr.line(error.stack ?? "");
  };
  // A defect in a callback: what is stored is safe, and another process takes the session over.
  const onDefect = (error: unknown): void => {
    tell(error);
    process.exit(exitCode.failed);
  };
  process.on("uncaughtException", onDefect);
  process.on("unhandledRejection", onDefect);
  // A promise that never settles would end Node silently, with exit 0 and work undone.
  process.on("beforeExit", () => onDefect(new Error("nothing was left to wait for before the command had ended")));

  let code: number;
  try {
    code = await runCommandLine(argv, io);
  } catch (error) {
    tell(error);
    code = exitCodeOfError(error);
  }
  await Promise.all([io.stdout.flush(), io.stderr.flush()]);
  const { failure } = io.stdout;
  if (failure && code === exitCode.ok) {
    complain(io, `Could not write the result (${failure.code ?? failure.message}).`);
    code = exitCode.failed;
  }
  // Not a natural end: a tool that was left behind, or a provider's socket, must not keep a finished command alive.
  process.exit(code);
}
