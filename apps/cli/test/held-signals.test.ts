import { EventEmitter } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, it, vi } from "vitest";
import { HeldSignals } from "../src/held-signals.ts";

/** As much of a process as signals are about. */
class FakeProcess extends EventEmitter {
  readonly pid = 4711;
  readonly killedBy: string[] = [];
  kill(_pid: number, signal: string): boolean {
    this.killedBy.push(signal);
    return true;
  }
  asProcess(): NodeJS.Process {
    return this as unknown as NodeJS.Process;
  }
}

function held(): { readonly process: FakeProcess; readonly signals: HeldSignals } {
  const process = new FakeProcess();
  return { process, signals: new HeldSignals(process.asProcess()) };
}

it("hands each signal that came to whoever answers it, once its maker is ready", async () => {
  const { process, signals } = held();
  process.emit("SIGINT");
  process.emit("SIGINT");
  process.emit("SIGTERM");
  const heard: string[] = [];
  signals.handTo("SIGINT", () => heard.push("SIGINT"));
  signals.handTo("SIGTERM", () => heard.push("SIGTERM"));
  expect(heard).toEqual([]);
  await Promise.resolve();
  expect(heard).toEqual(["SIGINT", "SIGINT", "SIGTERM"]);
  expect(["SIGINT", "SIGTERM", "SIGHUP"].map((name) => process.listenerCount(name))).toEqual([0, 0, 1]);
  signals.handTo("SIGINT", () => heard.push("twice"));
  await Promise.resolve();
  expect(heard).toHaveLength(3);
});

it("lets a signal do what it does by itself where nobody answers it, also one that came", async () => {
  const { process, signals } = held();
  process.emit("SIGTERM");
  await signals.release();
  expect(process.killedBy).toEqual(["SIGTERM"]);
  expect(process.eventNames()).toEqual([]);
  const quiet = held();
  await quiet.signals.release();
  expect(quiet.process.killedBy).toEqual([]);
});

it("loses none that came while this thread was busy, and is told only by the loop's next poll", async () => {
  const signals = new HeldSignals(process);
  const kill = vi.spyOn(process, "kill");
  // Sent from a thread of its own, while this one looks at nothing.
  const sent = new Int32Array(new SharedArrayBuffer(4));
  const code = `
    const { workerData } = require("node:worker_threads");
    process.kill(process.pid, "SIGHUP");
    Atomics.store(workerData, 0, 1);
    Atomics.notify(workerData, 0);`;
  const worker = new Worker(code, { eval: true, workerData: sent });
  expect(Atomics.wait(sent, 0, 0, 20_000)).not.toBe("timed-out");
  kill.mockReturnValue(true);
  await signals.release();
  expect(kill.mock.calls).toEqual([[process.pid, "SIGHUP"]]);
  await worker.terminate();
});
