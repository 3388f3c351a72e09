import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface StoreProcess {
  /** What it told, a JSON line each, as it comes. */
  readonly lines: AsyncIterable<Record<string, unknown>>;
  /** How it ended, with everything it wrote to stderr. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly stderr: string }>;
  kill(): void;
  /** Writes a line to its stdin: a script that waits for that goes on. */
  goOn(): void;
  /** Ends its stdin: a script that waits for that goes on. */
  endInput(): void;
}

/** Starts one of the scripts in `test/processes` as a process of its own, from source. */
export function startProcess(
  script: string,
  args: readonly string[],
  options: { readonly uid?: number; readonly gid?: number; readonly ulimit?: string } = {},
): StoreProcess {
  const { ulimit, ...user } = options;
  const file = fileURLToPath(new URL(`./processes/${script}.ts`, import.meta.url));
  const node = [process.execPath, "--import", "tsx", "--conditions=@turnkeeper/source", file, ...args];
  const limited = ulimit === undefined ? node : ["sh", "-c", `ulimit ${ulimit} && exec "$@"`, "sh", ...node];
  const [command = "", ...rest] = limited;
  const child = spawn(command, rest, { stdio: ["pipe", "pipe", "pipe"], ...user });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => void (stderr += chunk.toString()));
  const ended = new Promise<{ code: number | null; signal: string | null; stderr: string }>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stderr }));
  });
  const lines = createInterface({ input: child.stdout });
  return {
    lines: {
      async *[Symbol.asyncIterator]() {
        for await (const line of lines) yield JSON.parse(line) as Record<string, unknown>;
      },
    },
    ended,
    kill: () => void child.kill("SIGKILL"),
    goOn: () => void child.stdin.write("\n"),
    endInput: () => void child.stdin.end(),
  };
}

/** Everything a process tells until it ends by itself, which it must do with code 0. */
export async function outputOf(process: StoreProcess): Promise<Record<string, unknown>[]> {
  const told: Record<string, unknown>[] = [];
  for await (const line of process.lines) told.push(line);
  const { code, stderr } = await process.ended;
  if (code !== 0) throw new Error(`The process ended with ${code}: ${stderr}`);
  return told;
}
