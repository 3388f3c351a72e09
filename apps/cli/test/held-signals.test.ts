import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
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

it("lets a signal do what it does by itself where nobody answers it, also one that came", () => {
  const { process, signals } = held();
  process.emit("SIGTERM");
  signals.release();
  expect(process.killedBy).toEqual(["SIGTERM"]);
  expect(process.eventNames()).toEqual([]);
  const quiet = held();
  quiet.signals.release();
  expect(quiet.process.killedBy).toEqual([]);
});
