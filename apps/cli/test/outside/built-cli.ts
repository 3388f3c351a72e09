/** The CLI as users have it: the built program in a child process. */
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach } from "vitest";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../../..");
const mainFile = path.join(root, "apps/cli/dist/main.js");

let isBuilt = false;

function newestIn(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Math.max(0, ...files.map((entry) => statSync(path.join(entry.parentPath, entry.name)).mtimeMs));
}

/** What ships is what is tested: bundled anew where a source is newer than the bundle, which the suite has made before. */
function ensureBuilt(): void {
  if (isBuilt) return;
  const sources = ["packages", "apps"].flatMap((kind) =>
    readdirSync(path.join(root, kind)).map((name) => path.join(root, kind, name, "src")),
  );
  const bundled = statSync(mainFile, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (bundled < Math.max(...sources.map(newestIn))) {
    const { status, stderr } = spawnSync(process.execPath, [path.join(root, "apps/cli/bundle.mjs")], {
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`apps/cli could not be bundled: ${stderr}`);
  }
  isBuilt = true;
}

export interface CliOptions {
  readonly home: string;
  readonly env?: Readonly<Record<string, string>>;
  /** `null`: nothing comes, and no end. */
  readonly stdin?: string | Uint8Array | null;
  readonly cwd?: string;
}

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

const running = new Set<ChildProcessWithoutNullStreams>();
const folders: string[] = [];

async function kill(child: ChildProcessWithoutNullStreams): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

afterEach(async () => {
  await Promise.all([...running].map(kill));
  // What ran on a terminal that was killed hears of it, and may still be closing its store.
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
});

/** A folder of its own for one test: a home, or somewhere to put a file. */
export function makeFolder(): string {
  // Short, because a socket's path has 107 bytes.
  const folder = mkdtempSync(path.join(tmpdir(), "tk-"));
  folders.push(folder);
  return folder;
}

export function makeHome(config?: string): string {
  const home = makeFolder();
  if (config !== undefined) writeFileSync(path.join(home, "config.yaml"), config);
  return home;
}

/** The environment of a child: what a program needs, and nothing of whoever runs the tests. */
function environmentOf({ home, env }: CliOptions): NodeJS.ProcessEnv {
  const { PATH, LANG } = process.env;
  return { PATH, LANG, HOME: home, TURNKEEPER_HOME: home, NO_PROXY: "*", ...env };
}

/** A command that runs; what it has written so far can be looked at and waited for. */
export class RunningCli {
  readonly child: ChildProcessWithoutNullStreams;
  stdout = "";
  stderr = "";
  readonly ended: Promise<CliResult>;
  readonly #looks = new Set<() => void>();

  constructor(child: ChildProcessWithoutNullStreams) {
    this.child = child;
    running.add(child);
    child.stdin.on("error", () => {});
    child.stdout.setEncoding("utf8").on("data", (text: string) => this.#add("stdout", text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.#add("stderr", text));
    this.ended = new Promise((resolve) => {
      child.on("close", (code, signal) => {
        running.delete(child);
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
        for (const look of this.#looks) look();
      });
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** What was written, as a person at a terminal reads it. */
  get screen(): string {
    return this.stdout.replaceAll(/\p{Cc}\[[0-9;?]*[A-Za-z]/gu, "").replaceAll("\r", "");
  }

  /** Resolves once what was written matches; rejects when the command ends without it. */
  async sees(pattern: RegExp, stream: "stdout" | "stderr" | "screen" = "stdout"): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        const isSeen = pattern.test(this[stream]);
        if (!isSeen && running.has(this.child)) return;
        this.#looks.delete(look);
        if (isSeen) resolve();
        else
          reject(
            new Error(`The command ended without ${String(pattern)} on ${stream}: ${this.stdout}\n${this.stderr}`),
          );
      };
      this.#looks.add(look);
      look();
    });
  }

  #add(stream: "stdout" | "stderr", text: string): void {
    this[stream] += text;
    for (const look of this.#looks) look();
  }
}

export function startCli(args: readonly string[], options: CliOptions): RunningCli {
  ensureBuilt();
  const child = spawn(process.execPath, [mainFile, ...args], {
    env: environmentOf(options),
    cwd: options.cwd ?? options.home,
  });
  const cli = new RunningCli(child);
  if (options.stdin !== null) child.stdin.end(options.stdin ?? "");
  return cli;
}

export async function runCli(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return startCli(args, options).ended;
}

/**
 * What `npm start` runs once everything is built, under a shell as npm has it, in a process group of its own: signals to
 * the group come as from a terminal. Its first line on standard error is `node N`, with the id of what the shell runs.
 */
export function startScript(args: readonly string[], options: CliOptions): RunningCli {
  ensureBuilt();
  const handOver = path.join(root, "tooling/bootstrap/hand-over.mjs");
  const script = `import { handOver } from ${JSON.stringify(handOver)}; console.error("node", process.pid); handOver(process.argv.slice(1));`;
  const words = [process.execPath, "--input-type=module", "-e", script, ...args].map((word) => `'${word}'`);
  const child = spawn("bash", ["-c", `${words.join(" ")}; exit $?`], {
    env: environmentOf(options),
    cwd: options.cwd ?? options.home,
    detached: true,
  });
  child.stdin.end();
  return new RunningCli(child);
}

/** A command in a shell, for pipes. `$CLI` is the program. */
export async function runShell(script: string, options: CliOptions): Promise<CliResult> {
  ensureBuilt();
  const child = spawn("bash", ["-c", script], {
    env: { ...environmentOf(options), CLI: `${process.execPath} ${mainFile}` },
    cwd: options.cwd ?? options.home,
  });
  const shell = new RunningCli(child);
  child.stdin.end(options.stdin ?? "");
  return shell.ended;
}

/** Any command on a terminal of its own, which `script` of util-linux makes. Standard error goes to the terminal too. */
function onTerminal(command: string, options: CliOptions): RunningCli {
  ensureBuilt();
  const child = spawn("script", ["--quiet", "--flush", "--return", "--command", command, "/dev/null"], {
    env: { ...environmentOf(options), TERM: "xterm-256color", ...options.env },
    cwd: options.cwd ?? options.home,
  });
  return new RunningCli(child);
}

/** The program on a terminal of its own. */
export function startOnTerminal(args: readonly string[], options: CliOptions): RunningCli {
  // Without a shell in between, which would die of Ctrl-C by itself.
  const words = [process.execPath, mainFile, ...args].map((word) => `'${word}'`);
  return onTerminal(["exec", ...words].join(" "), options);
}

/** The program on a terminal that does not control it: no signal comes when that goes away. */
export function startBesideTerminal(args: readonly string[], options: CliOptions): RunningCli {
  const words = [process.execPath, mainFile, ...args].map((word) => `'${word}'`);
  return onTerminal(["exec setsid --wait", ...words].join(" "), options);
}

/** A shell with job control on a terminal of its own. `$CLI` is the program. */
export function startShellOnTerminal(options: CliOptions): RunningCli {
  const env = { ...options.env, CLI: `${process.execPath} ${mainFile}`, PS1: "shell> " };
  return onTerminal("exec bash --norc --noprofile -i", { ...options, env });
}

/** The events of `--json`. */
export function eventsOf(stdout: string): readonly (Record<string, unknown> & { readonly type: string })[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown> & { type: string });
}

export function typesOf(stdout: string): readonly string[] {
  const types = eventsOf(stdout).map(({ type }) => type);
  return types.filter((type, index) => type !== types[index - 1]);
}
