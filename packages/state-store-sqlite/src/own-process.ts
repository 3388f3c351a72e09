import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/** This module runs as it is built, or from its source where the tests of this repository load it. */
const isSource = import.meta.url.endsWith(".ts");

/**
 * Starts a module of this package, named as `./name` from here, in a process of its own with an IPC channel. Whatever
 * reads a store's bytes, or takes long in SQLite, which cannot be interrupted, is done there.
 */
export function startOwnProcess(module: string, argument: string): ChildProcess {
  const file = fileURLToPath(new URL(`${module}${isSource ? ".ts" : ".js"}`, import.meta.url));
  const loader = (): string[] => [
    "--conditions=@turnkeeper/source",
    `--import=${createRequire(import.meta.url).resolve("tsx")}`,
  ];
  return fork(file, [argument], { execArgv: isSource ? loader() : [], stdio: ["ignore", "ignore", "pipe", "ipc"] });
}
