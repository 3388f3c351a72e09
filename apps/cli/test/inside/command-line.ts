/** A command line in this process, for what needs no process of its own: its mistakes, its settings, its output. */
import { homedir } from "node:os";
import { PassThrough, Readable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { answerCommandLine } from "../../src/cli-process.ts";
import type { CommandIo } from "../../src/command-io.ts";
import { Output } from "../../src/output.ts";
import type { Environment } from "../../src/output.ts";

export interface InsideOptions {
  readonly home: string;
  readonly env?: Environment;
  readonly stdin?: string | Uint8Array;
}

export interface InsideResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A stream as a process has it, that keeps what it is given. */
export class KeptStream extends PassThrough {
  text = "";
  readonly isTTY: boolean;

  constructor(options: { readonly isTerminal?: boolean } = {}) {
    super();
    this.isTTY = options.isTerminal ?? false;
    this.setEncoding("utf8").on("data", (text: string) => (this.text += text));
  }

  getWindowSize(): readonly [number, number] {
    return [80, 24];
  }

  asOutput(environment: Environment = {}): Output {
    return new Output(this as unknown as WriteStream, environment);
  }
}

export async function runInside(
  argv: readonly string[],
  { home, env, stdin = "" }: InsideOptions,
): Promise<InsideResult> {
  const environment = { TURNKEEPER_HOME: home, ...env };
  const [stdout, stderr] = [new KeptStream(), new KeptStream()];
  const io: CommandIo = {
    stdin: Readable.from([Buffer.from(stdin)]) as unknown as ReadStream,
    stdout: stdout.asOutput(environment),
    stderr: stderr.asOutput(environment),
    environment,
    workingFolder: home,
    userFolder: homedir(),
    onSignal: () => () => {},
    releaseSignals: async () => {},
    suspend: () => {},
    onExit: () => () => {},
    exitNow: (code) => {
      throw new Error(`exit ${code}`);
    },
  };
  const code = await answerCommandLine(argv, io);
  await Promise.all([io.stdout.flush(), io.stderr.flush()]);
  return { code, stdout: stdout.text, stderr: stderr.text };
}
