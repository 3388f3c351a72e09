import { homedir } from "node:os";
import { complain } from "./command-io.ts";
import type { CommandIo } from "./command-io.ts";
import { exhaustionText, isExhaustion } from "./exhaustion.ts";
import { exitCode } from "./exit-code.ts";
import type { HeldSignals } from "./held-signals.ts";
import { Output } from "./output.ts";
import { oneLine } from "./one-line.ts";
import { runCommandLine } from "./program.ts";
import { StandardTerminals } from "./standard-terminals.ts";

function workingFolderOf(process: NodeJS.Process): string | undefined {
  try {
    return process.cwd();
  } catch {
    // Whoever needs it says so: help and version do not.
    return undefined;
  }
}

type EndProcess = (code: number) => never;

function ioOf(process: NodeJS.Process, held: HeldSignals, end: EndProcess): CommandIo {
  return {
    // Node makes the stream at the first look, and a stream that nobody reads costs start-up time all the same.
    get stdin() {
      return process.stdin;
    },
    stdout: new Output(process.stdout, process.env),
    stderr: new Output(process.stderr, process.env),
    environment: process.env,
    workingFolder: workingFolderOf(process),
    userFolder: homedir(),
    onSignal: (signal, listener) => {
      process.on(signal, listener);
      held.handTo(signal, listener);
      return () => process.removeListener(signal, listener);
    },
    releaseSignals: () => held.release(),
    suspend: () => {
      // Windows knows no such thing.
      if (process.platform !== "win32") process.kill(0, "SIGTSTP");
    },
    onExit: (listener) => {
      process.on("exit", listener);
      return () => process.removeListener("exit", listener);
    },
    exitNow: end,
  };
}

interface Telling {
  readonly isDebug: boolean;
  /** The home that the command line named. */
  readonly home?: string | undefined;
}

/** Without one more file, where the reason is that none can be opened. */
function tellExhaustion(io: CommandIo): number {
  complain(io, exhaustionText);
  return exitCode.storeUnusable;
}

async function tellFailure(error: unknown, io: CommandIo, telling: Telling): Promise<number> {
  if (isExhaustion(error)) return tellExhaustion(io);
  try {
    return await tellByCode(error, io, telling);
  } catch (failure) {
    // What tells it could not be loaded: then it is told as it is, without the kernel, which no --help is to load.
    complain(io, oneLine(error instanceof Error ? error.message : String(error)));
    return isExhaustion(failure) ? tellExhaustion(io) : exitCode.failed;
  }
}

/** Tells an error on one line and answers its exit code. Loaded when something failed: help does without it. */
async function tellByCode(error: unknown, io: CommandIo, { isDebug, home }: Telling): Promise<number> {
  const [{ failureLine }, { exitCodeOfError }, { nextStepOfError, stepLines }, { absolutePath }] = await Promise.all([
    import("./cli-error.ts"),
    import("./failure-code.ts"),
    import("./next-step.ts"),
    import("./places.ts"),
  ]);
  complain(io, failureLine(error));
  const hasHome = home !== undefined && io.workingFolder !== undefined;
  // The error was told; a next step that cannot be found out is none.
  const step = await nextStepOfError(error, hasHome ? { home: absolutePath(io, home) } : {}).catch(() => undefined);
  if (step) for (const line of stepLines(step)) io.stderr.line(line);
  if (isDebug && error instanceof Error) io.stderr.line(error.stack ?? "");
  return exitCodeOfError(error);
}

/** Runs a command line to its exit code; what it failed with has been told then. */
export async function answerCommandLine(argv: readonly string[], io: CommandIo): Promise<number> {
  let home: string | undefined;
  try {
    return await runCommandLine(argv, io, (flags) => (home = flags.home));
  } catch (error) {
    return tellFailure(error, io, {
      isDebug: argv.includes("--debug"),
      home,
    });
  }
}

/** Runs one command line in this process and ends it: output drained, exit code as the README's table says. */
export async function runProcess(process: NodeJS.Process, held: HeldSignals): Promise<void> {
  const argv = process.argv.slice(2);
  const terminals = new StandardTerminals();
  const end = (code: number): never => {
    // Behind whoever listens for the end and still draws.
    process.on("exit", () => terminals.letGo());
    return process.exit(code);
  };
  const io = ioOf(process, held, end);
  // A defect in a callback: what is stored is safe, and another process takes the session over.
  const onDefect = (error: unknown): void => {
    void tellFailure(error, io, { isDebug: argv.includes("--debug") }).then((code) =>
      end(isExhaustion(error) ? code : exitCode.failed),
    );
  };
  process.on("uncaughtException", onDefect);
  process.on("unhandledRejection", onDefect);
  // Node's own way takes two lines and names its flags.
  process.removeAllListeners("warning");
  process.on("warning", (warning) => complain(io, oneLine(`${warning.name}: ${warning.message}`)));
  // A promise that never settles would end Node silently, with exit 0 and work undone.
  process.on("beforeExit", () => onDefect(new Error("nothing was left to wait for before the command had ended")));

  let code = await answerCommandLine(argv, io);
  await Promise.all([io.stdout.flush(), io.stderr.flush()]);
  const { failure } = io.stdout;
  if (failure && code === exitCode.ok) {
    complain(io, `Could not write the result (${failure.code ?? failure.message}).`);
    code = exitCode.failed;
  }
  // Not a natural end: a tool that was left behind, or a provider's socket, must not keep a finished command alive.
  end(code);
}
