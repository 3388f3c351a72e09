import type { ReadStream } from "node:tty";
import type { Environment, Output } from "./output.ts";

/** Signals that a command may answer itself. */
export type CommandSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** Everything a command has of its process. Only main.ts makes one from the real process. */
export interface CommandIo {
  readonly stdin: ReadStream;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly environment: Environment;
  /** Absent where it was deleted under the shell. */
  readonly workingFolder: string | undefined;
  readonly userFolder: string;
  /** Calls `listener` for each arrival of the signal, in place of what the system would do. Returns the way back. */
  onSignal(signal: CommandSignal, listener: () => void): () => void;
  /** Ends the process now, without waiting for anything. */
  exitNow(code: number): never;
}

/** A line on stderr under the program's name: a warning, or why a command failed. */
export function complain(io: Pick<CommandIo, "stderr">, text: string): void {
  io.stderr.line(`turnkeeper: ${text}`);
}
