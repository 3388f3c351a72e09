import { CodedError } from "@turnkeeper/kernel";
import { expect, test, vi } from "vitest";
import type { KillReceipt, StopStep } from "../src/index.ts";
import { createShellTool } from "../src/index.ts";
import * as processTable from "../src/process-table.ts";
import { stopSentence } from "../src/stop-receipt.ts";
import { deps, hasProcessTable, isRunning, processIdsIn, rejection, workbench } from "./workbench.ts";

/** The receipt of a stopped call, as whoever runs the tool gets it. */
function receiptOf(error: unknown): KillReceipt {
  if (!CodedError.is(error)) throw new Error(`Expected a coded error, got ${String(error)}.`);
  // It goes into logs and stores: what JSON does not carry is no part of it.
  return JSON.parse(JSON.stringify(error.context["receipt"])) as KillReceipt;
}

// Each escapes from the child's own process group in its way, and notes its process id; the last one reports.
const escapes: readonly (readonly [name: string, command: string])[] = [
  ["a background job", "sleep 1000 & echo $! >ids; echo ready; wait"],
  [
    "a grandchild that nohup keeps",
    "nohup sh -c 'echo $$ >ids; echo ready >&2; exec sleep 1000' 2>&1 >/dev/null & wait",
  ],
  ["a session of its own", "setsid sh -c 'echo $$ >ids; echo ready; exec sleep 1000' & wait"],
  [
    "forked twice, its parents gone",
    "( setsid sh -c '(sh -c \"echo \\$\\$ >ids; echo ready; exec sleep 1000\" &) ; exit 0' ) ; exec sleep 1000",
  ],
  [
    "one that ignores TERM, in a session of its own",
    "setsid sh -c 'trap \"\" TERM; echo $$ >ids; echo ready; while :; do sleep 1; done' & wait",
  ],
  ["a job of an interactive shell", "set -m; sleep 1000 & echo $! >ids; echo ready; wait"],
];

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable).each(escapes)(
  "%s is ended with the call, and the receipt adds up",
  async (_name, command) => {
    const bench = await workbench();
    const call = createShellTool(deps, { graceMs: 200 }).execute({ command }, bench.context);
    await bench.moved;
    await expect.poll(() => processIdsIn(bench.folder, "ids").catch(() => [])).toHaveLength(1);
    bench.stop();
    const receipt = receiptOf(await rejection(call));
    expect((await processIdsIn(bench.folder, "ids")).filter(isRunning)).toEqual([]);
    if (!receipt.supported) throw new Error("Expected a process table.");
    expect(receipt.survivors).toEqual([]);
    const [term, kill] = receipt.steps;
    if (term?.step !== "term") throw new Error(`Expected TERM first, got ${JSON.stringify(receipt)}.`);
    expect(term.groupCount + term.sweptCount).toBeGreaterThan(0);
    expect(term.groupCount + term.sweptCount).toBeLessThanOrEqual(receipt.foundCount);
    expect(kill === undefined ? 0 : term.leftCount).toBe(term.leftCount);
    if (kill?.step === "kill") expect(kill).toMatchObject({ leftCount: 0 });
  },
);

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("the receipt says what each step reached and what it left", async () => {
  const bench = await workbench();
  const command = `
    setsid sh -c 'trap "" TERM; echo $$ >daemon; while :; do read line <>gate; done' &
    echo ready; read line <>gate`;
  const call = createShellTool(deps, { graceMs: 150 }).execute(
    { command: `mkfifo gate; exec bash -c '${command.replaceAll("'", "'\\''")}'` },
    bench.context,
  );
  await bench.moved;
  // From then on there are two, neither of which starts another.
  await expect.poll(() => processIdsIn(bench.folder, "daemon").catch(() => [])).toHaveLength(1);
  bench.stop();
  const error = await rejection(call);
  expect(receiptOf(error)).toEqual({
    supported: true,
    foundCount: 2,
    killedCount: 1,
    survivors: [],
    steps: [
      { step: "term", groupCount: 1, sweptCount: 1, leftCount: 1 },
      { step: "kill", groupCount: 0, sweptCount: 1, leftCount: 0 },
    ],
  });
  expect(error.message).toContain("Its processes were ended (KILL was needed; some had left its process group).");
});

test("a time limit leaves the same receipt as a stop", async () => {
  const { context } = await workbench();
  const error = await rejection(createShellTool(deps).execute({ command: "sleep 1000", timeout_s: 0.1 }, context));
  expect(error).toMatchObject({ code: "COMMAND_TIMED_OUT" });
  expect(receiptOf(error).steps.map(({ step }) => step)).toEqual(["term"]);
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("a hard stop skips TERM, and the receipt does not claim it", async () => {
  const bench = await workbench();
  const call = createShellTool(deps).execute({ command: "echo ready; exec sleep 1000" }, bench.context);
  await bench.moved;
  bench.stopHard();
  const { steps } = receiptOf(await rejection(call));
  expect(steps).toEqual([{ step: "kill", groupCount: 1, sweptCount: 0, leftCount: 0 }]);
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("what survives KILL is detached from, by name, within bounds", async () => {
  const bench = await workbench();
  // Nothing that a test may do survives KILL; here the signals do not arrive.
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  const call = createShellTool(deps, { graceMs: 20, drainMs: 20 }).execute(
    { command: "echo $$ >ids; echo ready; exec sleep 1000" },
    bench.context,
  );
  await bench.moved;
  bench.stop();
  const error = await rejection(call);
  kill.mockRestore();
  const ids = await processIdsIn(bench.folder, "ids");
  expect(ids.filter(isRunning)).toEqual(ids);
  expect(error.message).toContain(`These of its processes could not be ended: ${ids.join(", ")}.`);
  expect(receiptOf(error)).toMatchObject({ survivors: ids });
  expect(receiptOf(error).steps.at(-1)).toEqual({ step: "detach", processIds: ids });
});

test("without a process table the steps of the group are told all the same", async () => {
  vi.spyOn(processTable, "processTableSupported").mockReturnValue(false);
  const bench = await workbench();
  const call = createShellTool(deps, { graceMs: 20, drainMs: 20 }).execute(
    { command: "trap '' TERM; echo ready; sleep 1000; sleep 1000" },
    bench.context,
  );
  await bench.moved;
  bench.stop();
  expect(receiptOf(await rejection(call))).toEqual({
    supported: false,
    steps: [
      { step: "term", groupCount: 1, sweptCount: 0, leftCount: 1 },
      { step: "kill", groupCount: 1, sweptCount: 0, leftCount: 0 },
    ],
  });
});

test("the sentence does not vary with counts: a loop must see that the same thing happened again", () => {
  const steps = (count: number): readonly StopStep[] => [
    { step: "term", groupCount: count, sweptCount: count, leftCount: count },
    { step: "kill", groupCount: count, sweptCount: 0, leftCount: 0 },
  ];
  expect(stopSentence(steps(1), true)).toBe(stopSentence(steps(7), true));
});
