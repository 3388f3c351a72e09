import { getEventListeners } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test, vi } from "vitest";
import { createShellTool } from "../src/index.ts";
import * as processTable from "../src/process-table.ts";
import { deps, hasProcessTable, isRunning, processIdsIn, rejection, workbench } from "./workbench.ts";

// Each process notes its id; the daemon, outside the group, prints once all the others have.
const tree = `
  echo $$ >ids
  sleep 1000 & echo $! >>ids
  (sleep 1000 & echo $! >>ids; sleep 1000) & echo $! >>ids
  setsid sh -c 'echo $$ >daemon; until [ $(wc -l <ids) = 4 ]; do sleep 0.01; done; echo ready; exec sleep 1000' &
  wait`;

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("a stop ends the whole tree, daemons outside the process group too", async () => {
  const bench = await workbench();
  const call = createShellTool(deps).execute({ command: tree }, bench.context);
  await bench.moved;
  bench.stop();
  const error = await rejection(call);
  expect(error).toMatchObject({ code: "CALL_INTERRUPTED" });
  expect(error.message).toBe(
    "The command was stopped with the turn. Its processes were ended (some had left its process group).\nready",
  );
  const ids = [...(await processIdsIn(bench.folder, "ids")), ...(await processIdsIn(bench.folder, "daemon"))];
  expect(ids.length).toBe(5);
  expect(ids.filter(isRunning)).toEqual([]);
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)(
  "control: without the process table, the daemon outside the group outlives the stop",
  async () => {
    const supported = vi.spyOn(processTable, "processTableSupported").mockReturnValue(false);
    const bench = await workbench();
    const call = createShellTool(deps, { graceMs: 500, drainMs: 20 }).execute({ command: tree }, bench.context);
    await bench.moved;
    bench.stop();
    expect((await rejection(call)).message).toContain("Its process group was ended.");
    supported.mockRestore();
    expect((await processIdsIn(bench.folder, "ids")).filter(isRunning)).toEqual([]);
    expect((await processIdsIn(bench.folder, "daemon")).filter(isRunning)).toHaveLength(1);
  },
);

test("a command may clean up on TERM, and what it says then is kept", async () => {
  const bench = await workbench();
  const shell = createShellTool(deps, { graceMs: 60_000 });
  const command = "trap 'echo cleaned; touch cleaned; exit 0' TERM; echo ready; sleep 1000 & wait";
  const call = shell.execute({ command }, bench.context);
  await bench.moved;
  bench.stop();
  expect((await rejection(call)).message).toMatch(/ready\ncleaned$/);
  expect(existsSync(path.join(bench.folder, "cleaned"))).toBe(true);
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("each process is asked once: a second TERM means impatience to many programs", async () => {
  const bench = await workbench();
  const kill = vi.spyOn(process, "kill");
  const command = `
    trap '' TERM; echo $$ >leader; sleep 1000 & sleep 1000 &
    setsid sh -c 'echo $$ >daemon; echo ready; exec sleep 1000' & wait`;
  const call = createShellTool(deps, { graceMs: 30 }).execute({ command }, bench.context);
  await bench.moved;
  bench.stop();
  await rejection(call);
  const [leader = 0] = await processIdsIn(bench.folder, "leader");
  const [daemon = 0] = await processIdsIn(bench.folder, "daemon");
  expect(kill.mock.calls.toSorted(([left], [right]) => left - right)).toEqual([
    [-leader, "SIGTERM"],
    [-leader, "SIGKILL"],
    [daemon, "SIGTERM"],
    [daemon, "SIGKILL"],
  ]);
});

test("what ignores TERM is killed after the grace", async () => {
  const bench = await workbench();
  const shell = createShellTool(deps, { graceMs: 30 });
  const call = shell.execute(
    { command: "trap '' TERM; echo $$ >ids; echo ready; sleep 1000; sleep 1000" },
    bench.context,
  );
  await bench.moved;
  bench.stop();
  expect(await rejection(call)).toMatchObject({ code: "CALL_INTERRUPTED" });
  expect((await processIdsIn(bench.folder, "ids")).filter(isRunning)).toEqual([]);
});

test("a hard stop does not wait for the grace, at once or within a soft one", async () => {
  const shell = createShellTool(deps, { graceMs: 60_000 });
  const command = "trap 'echo asked' TERM; echo $$ >ids; echo ready; while :; do sleep 1000 & wait; done";
  const atOnce = await workbench();
  const call = shell.execute({ command }, atOnce.context);
  await atOnce.moved;
  atOnce.stopHard();
  expect((await rejection(call)).message).not.toContain("asked");
  const later = await workbench();
  const progress = vi.spyOn(later.context, "progress");
  const second = shell.execute({ command }, later.context);
  await later.moved;
  later.stop();
  await vi.waitFor(() => expect(progress.mock.calls.length).toBeGreaterThan(1));
  later.stopHard();
  expect((await rejection(second)).message).toContain("asked");
  for (const bench of [atOnce, later]) expect((await processIdsIn(bench.folder, "ids")).filter(isRunning)).toEqual([]);
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("ending one call leaves the other calls of the turn alone", async () => {
  const bench = await workbench();
  const shell = createShellTool(deps);
  const left = shell.execute({ command: "mkfifo gate; echo $$ >left; read <gate" }, bench.context);
  await expect.poll(() => existsSync(path.join(bench.folder, "left"))).toBe(true);
  await rejection(shell.execute({ command: "setsid sleep 1000 & wait", timeout_s: 0.1 }, bench.context));
  expect((await processIdsIn(bench.folder, "left")).filter(isRunning)).toHaveLength(1);
  bench.stop();
  await rejection(left);
});

test("a call of a stopped turn starts nothing", async () => {
  const bench = await workbench();
  bench.stop();
  expect(await rejection(createShellTool(deps).execute({ command: "touch ran" }, bench.context))).toMatchObject({
    code: "CALL_INTERRUPTED",
  });
  expect(existsSync(path.join(bench.folder, "ran"))).toBe(false);
});

test("no listener stays on the turn's signals, however the call ends", async () => {
  const bench = await workbench();
  const shell = createShellTool(deps, { graceMs: 30 });
  await shell.execute({ command: "true" }, bench.context);
  await rejection(shell.execute({ command: "sleep 1000", timeout_s: 0.05 }, bench.context));
  const call = shell.execute({ command: "echo ready; sleep 1000" }, bench.context);
  await bench.moved;
  bench.stop();
  await rejection(call);
  for (const signal of [bench.context.signal, bench.context.hardSignal]) {
    expect(getEventListeners(signal, "abort")).toEqual([]);
  }
});
