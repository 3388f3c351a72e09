import type { ReadStream } from "node:tty";
import type { Environment, Output } from "./output.ts";

/** Signals that a command may answer itself. */
export type CommandSignal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGCONT";

/** Everything a command has of its process. Only main.ts makes one from the real process. */
export interface CommandIo {
  readonly stdin: ReadStream;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly environment: Environment;
  /** Absent where it was deleted under the shell. */
  readonly workingFolder: string | undefined;
  readonly userFolder: string;
  /**
   * Calls `listener` for each arrival of the signal, in place of what the system would do, and for each that came before.
   * Returns the way back.
   */
  onSignal(signal: CommandSignal, listener: () => void): () => void;
  /** Leaves to the system what nobody listens for; until then it is held, for a command that answers it from its beginning. */
  releaseSignals(): Promise<void>;
  /** Stops the process and what runs in front with it, as Ctrl-Z does; where nobody can go on with it, nothing happens. */
  suspend(): void;
  /** Calls `listener` as the process ends, however it does; what it does then must be done at once. Returns the way back. */
  onExit(listener: () => void): () => void;
  /** Ends the process now, without waiting for anything. */
  exitNow(code: number): never;
}

/** A line on stderr under the program's name: a warning, or why a command failed. */
export function complain(io: Pick<CommandIo, "stderr">, text: string): void {
  io.stderr.line(`turnkeeper: ${text}`);
}
