import { readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";

/** A worker of a test: says "ready", then goes where its input says, then says "late". */
const { way, gate } = workerData as {
  readonly way: "answer" | "loop" | "native" | "throw" | "exit";
  readonly gate: string;
};
parentPort?.postMessage("ready");
switch (way) {
  case "answer":
    break;
  case "loop":
    // Backtracks for longer than anybody lives.
    /^(a+)+$/.test(`${"a".repeat(60)}b`);
    break;
  case "native":
    // A thread in a system call cannot be interrupted; it goes on when somebody opens the other end.
    readFileSync(gate);
    break;
  case "throw":
    throw new Error("broken");
  case "exit":
    process.exit(3);
}
parentPort?.postMessage("late");
