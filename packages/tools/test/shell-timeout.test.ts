import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test } from "vitest";
import { createShellTool } from "../src/index.ts";
import { deps, isRunning, processIdsIn, rejection, workbench } from "./workbench.ts";

test("a command that runs too long is ended, and the error says so and shows what it printed", async () => {
  const { context, folder } = await workbench();
  const shell = createShellTool(deps);
  const error = await rejection(
    shell.execute({ command: "echo $$ >ids; echo begun; sleep 1000; echo never", timeout_s: 0.2 }, context),
  );
  expect(error).toMatchObject({ code: "COMMAND_TIMED_OUT" });
  expect(error.message).toBe("The command did not end within 0.2 s. Its processes were ended.\nbegun");
  expect((await processIdsIn(folder, "ids")).filter(isRunning)).toEqual([]);
});

test("without a limit of its own a call gets the tool's, 600 s unless set otherwise", async () => {
  const bench = await workbench();
  const host = virtualHost();
  const shell = createShellTool({ ...deps, host }, { graceMs: 0 });
  const call = rejection(shell.execute({ command: "echo ready; sleep 1000" }, bench.context));
  await bench.moved;
  await host.advance(599_999);
  expect(host.pendingTimerCount()).toBe(1);
  // From here on real processes end, and the ladder waits for them in virtual time.
  const pump = { done: false };
  void call.finally(() => (pump.done = true));
  while (!pump.done) await host.advance(1);
  expect((await call).message).toMatch(/^The command did not end within 600 s\./);
  expect(host.pendingTimerCount()).toBe(0);
});

test("a call that ends in time leaves no timer", async () => {
  const { context } = await workbench();
  const host = virtualHost();
  await createShellTool({ ...deps, host }).execute({ command: "true" }, context);
  expect(host.pendingTimerCount()).toBe(0);
});

test("the declared wait is longer than the limit, the grace and the drain together", () => {
  const { boundMs } = createShellTool(deps, { timeoutMs: 90_000, graceMs: 3_000, drainMs: 500 });
  if (typeof boundMs !== "function") throw new Error("Expected a bound that follows the arguments.");
  expect(boundMs({ command: "true" })).toBeGreaterThan(93_500);
  expect(boundMs({ command: "true", timeout_s: 1 })).toBeGreaterThan(4_500);
  expect(boundMs({ command: "true", timeout_s: 1 })).toBeLessThan(20_000);
});
