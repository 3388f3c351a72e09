// Hands a terminal over to the built CLI: its signals, and its end.
import { spawn } from "node:child_process";
import path from "node:path";
import { root } from "./bootstrap.mjs";

/** Runs the CLI in this process's place. It answers signals itself: Ctrl-C stops its turn, SIGTERM lets a gateway drain. */
export function handOver(args) {
  const main = path.join(root, "apps", "cli", "dist", "main.js");
  const cli = spawn(process.execPath, [main, ...args], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => signal !== "SIGINT" && cli.kill(signal));
  // The shell that npm puts between ends at SIGTERM and passes nothing on: then whoever started this is gone. Told once:
  // a second signal is somebody who does not want to wait for what drains.
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    cli.kill("SIGTERM");
  }, 500);
  cli.on("exit", (code, signal) => {
    clearInterval(watch);
    process.exitCode = code ?? (signal === "SIGINT" ? 130 : 1);
  });
}
