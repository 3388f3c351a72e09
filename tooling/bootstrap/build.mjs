// Compiles the workspace: takes back outputs without a source, then `tsc -b` within a limit, then builds the gateway's
// console and bundles the CLI.
//   node tooling/bootstrap/build.mjs [arguments of tsc -b]
// The native compiler works on many goroutines and has been seen to stop for ever (once in some hundreds of runs).
// A run past its limit is asked for its goroutines (SIGQUIT: they go to stderr, for a report to its makers), ended,
// and followed by one run on a single thread, which has nobody to wait for. Nothing about the result is repeated:
// a compiler that answers is believed the first time.
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { sweepDist } from "./sweep-dist.mjs";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
/** A cold build takes about 7 s on two quiet processors, and a minute when they are shared with all the tests. */
const limitMs = 300_000;
/** How long the compiler may take to write its goroutines before it is killed. */
const dumpMs = 5_000;

/** Where the compiler is: its own launcher starts it as a grandchild, which a signal to the launcher does not reach. */
async function compiler() {
  const launcher = path.join(root, "node_modules", "typescript-native", "lib", "getExePath.js");
  return (await import(pathToFileURL(launcher).href)).default();
}

/** One run of a command: its exit code, or `undefined` when it did not end within `limitMs` and was ended. */
export async function runBounded(command, args, { limitMs, cwd = root }) {
  const child = spawn(command, args, { cwd, stdio: "inherit" });
  let isOver = false;
  const timers = [
    setTimeout(() => {
      isOver = true;
      child.kill("SIGQUIT");
      timers.push(setTimeout(() => child.kill("SIGKILL"), dumpMs));
    }, limitMs),
  ];
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => resolve(isOver ? undefined : (code ?? 1)));
    });
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}

/** Builds; `run` is one bounded run of the compiler with more arguments. Resolves to the exit code to end with. */
export async function build(run, say) {
  for (const threads of [[], ["--singleThreaded"]]) {
    const code = await run(threads);
    if (code !== undefined) return code;
    say(`build: the compiler did not end in time${threads.length === 0 ? "; once more, on one thread" : ""}`);
  }
  return 1;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  sweepDist();
  const [cli, gateway] = [path.join(root, "apps", "cli"), path.join(root, "apps", "gateway")];
  const [command, args] = [await compiler(), ["-b", ...process.argv.slice(2)]];
  process.exitCode = await build(
    (more) => runBounded(command, [...args, ...more], { limitMs }),
    (line) => console.error(line),
  );
  const projects = process.argv.slice(2).map((project) => path.resolve(project));
  const isAsked = (project) => process.exitCode === 0 && (projects.length === 0 || projects.includes(project));
  if (isAsked(gateway)) await (await import("./console-page.mjs")).buildConsolePage();
  if (isAsked(cli)) await (await import("../../apps/cli/bundle.mjs")).bundle();
}
