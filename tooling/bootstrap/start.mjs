// npm start: sets up, builds, and hands over to the CLI. Without arguments: `chat` on a terminal, one demo turn elsewhere.
import { spawn } from "node:child_process";
import path from "node:path";
import { root, run, setUp } from "./bootstrap.mjs";

const demoMessage = "List the files in packages and tell me which README is longest";

setUp();
run("turbo", ["run", "build:all", "--output-logs=errors-only", "--log-prefix=none"], { quiet: true });

const given = process.argv.slice(2);
const onTerminal = process.stdin.isTTY && process.stdout.isTTY;
const args = given.length > 0 ? given : onTerminal ? ["chat"] : ["run", demoMessage, "--model", "demo/tools", "--yes"];
// The CLI answers signals itself (Ctrl-C stops the turn, not the process): this parent only waits and passes its end on.
const cli = spawn(process.execPath, [path.join(root, "apps", "cli", "dist", "main.js"), ...args], { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => signal !== "SIGINT" && cli.kill(signal));
// The shell that npm puts between ends at SIGTERM and passes nothing on: then whoever started this is gone.
const parent = process.ppid;
const watch = setInterval(() => process.ppid !== parent && cli.kill("SIGTERM"), 500);
cli.on("exit", (code, signal) => {
  clearInterval(watch);
  process.exitCode = code ?? (signal === "SIGINT" ? 130 : 1);
});
