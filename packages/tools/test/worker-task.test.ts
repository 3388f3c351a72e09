import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { open } from "node:fs/promises";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { runWorker } from "../src/worker-task.ts";
import type { WorkerEnd } from "../src/worker-task.ts";
import { workbench } from "./workbench.ts";
import type { Workbench } from "./workbench.ts";

interface Run {
  readonly end: Promise<WorkerEnd>;
  readonly heard: readonly string[];
}

function run(
  bench: Workbench,
  way: string,
  {
    host = systemHost,
    ...limits
  }: { readonly host?: Host; readonly timeoutMs?: number; readonly terminateMs?: number } = {},
): Run {
  const heard: string[] = [];
  const end = runWorker<string>(
    { host },
    {
      module: new URL("stuck-worker.ts", import.meta.url),
      input: { way, gate: path.join(bench.folder, "gate") },
      timeoutMs: 20_000,
      terminateMs: 5_000,
      signal: bench.context.signal,
      ...limits,
      onMessage: (message) => {
        heard.push(message);
        return message === "late";
      },
    },
  );
  return { end, heard };
}

test("a worker that answers is heard to its last message", async () => {
  const bench = await workbench();
  const { end, heard } = run(bench, "answer");
  expect(await end).toEqual({ kind: "finished" });
  expect(heard).toEqual(["ready", "late"]);
  expect(getEventListeners(bench.context.signal, "abort")).toEqual([]);
});

test("a loop that never yields is terminated by a stop, and does not block the event loop meanwhile", async () => {
  const bench = await workbench();
  const { end, heard } = run(bench, "loop");
  await vi.waitFor(() => expect(heard).toEqual(["ready"]), { timeout: 20_000 });
  bench.stop();
  expect(await end).toEqual({ kind: "stopped", by: "interrupt", steps: [{ step: "terminate", ended: true }] });
  expect(getEventListeners(bench.context.signal, "abort")).toEqual([]);
});

test("a loop that never yields is terminated when its time is up", async () => {
  const bench = await workbench();
  const host = virtualHost();
  const { end, heard } = run(bench, "loop", { host, timeoutMs: 300 });
  await vi.waitFor(() => expect(heard).toEqual(["ready"]), { timeout: 20_000 });
  await host.advance(300);
  expect(await end).toEqual({ kind: "stopped", by: "timeout", steps: [{ step: "terminate", ended: true }] });
  expect(host.pendingTimerCount()).toBe(0);
});

test("a thread that cannot be terminated is detached from, and what it says later is not heard", async () => {
  const bench = await workbench();
  expect(spawnSync("mkfifo", [path.join(bench.folder, "gate")]).status).toBe(0);
  const { end, heard } = run(bench, "native", { terminateMs: 50 });
  await vi.waitFor(() => expect(heard).toEqual(["ready"]), { timeout: 20_000 });
  bench.stop();
  expect(await end).toEqual({
    kind: "stopped",
    by: "interrupt",
    steps: [
      { step: "terminate", ended: false },
      { step: "detach", processIds: [] },
    ],
  });
  // Lets the thread go on: it would now say "late".
  const gate = await open(path.join(bench.folder, "gate"), "w");
  onTestFinished(() => gate.close());
  await gate.write("x");
  await new Promise((resolve) => void systemHost.timers.after(100, () => resolve(undefined)));
  expect(heard).toEqual(["ready"]);
});

test("a worker that throws or ends without an answer has failed, and harms nobody else", async () => {
  const bench = await workbench();
  expect(await run(bench, "throw").end).toMatchObject({ kind: "failed", error: { message: "broken" } });
  expect(await run(bench, "exit").end).toMatchObject({
    kind: "failed",
    error: { message: "The worker ended with code 3 and no answer." },
  });
});

test("a turn that was stopped before starts no work", async () => {
  const bench = await workbench();
  bench.stop();
  const { end, heard } = run(bench, "answer");
  expect(await end).toMatchObject({ kind: "stopped", by: "interrupt" });
  expect(heard).toEqual([]);
});
