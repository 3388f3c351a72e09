import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { systemHost } from "@turnkeeper/kernel";
import { expect, onTestFinished, test, vi } from "vitest";
import { killMarkedProcesses } from "../src/index.ts";
import * as processTable from "../src/process-table.ts";
import { hasProcessTable, isRunning, rejection, turnMarkerName } from "./workbench.ts";

const host = systemHost;

/** Starts a command that prints one line when it stands, and gives that line. */
async function started(
  command: string,
  marker: Record<string, string>,
): Promise<{ child: ChildProcess; line: string; exit: Promise<unknown> }> {
  const child = spawn("/bin/sh", ["-c", command], {
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
    env: { PATH: process.env["PATH"], ...marker },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exit = once(child, "exit");
  const [chunk] = await once(child.stdout, "data");
  return { child, exit, line: String(chunk).trim() };
}

const uniqueMarker = (): Record<string, string> => ({ [turnMarkerName]: host.random.id() });

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("every process that carries the marker ends, the daemon of a dead parent too", async () => {
  const marker = uniqueMarker();
  const { exit, line } = await started("setsid sh -c 'echo $$; exec sleep 1000' &", marker);
  await exit;
  expect(isRunning(Number(line))).toBe(true);
  expect(await killMarkedProcesses({ host }, marker)).toEqual({
    supported: true,
    foundCount: 1,
    killedCount: 0,
    survivors: [],
    steps: [{ step: "term", groupCount: 0, sweptCount: 1, leftCount: 0 }],
  });
  expect(isRunning(Number(line))).toBe(false);
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("what ignores TERM is killed after the grace, and the receipt counts it", async () => {
  const marker = uniqueMarker();
  const { exit } = await started("trap '' TERM; echo ready; while :; do sleep 1000; done", marker);
  const receipt = await killMarkedProcesses({ host }, marker, { graceMs: 30 });
  expect(receipt).toMatchObject({ supported: true, survivors: [] });
  expect(receipt.supported && receipt.killedCount).toBeGreaterThan(0);
  expect(await exit).toEqual([null, "SIGKILL"]);
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)(
  "a process with another value, a longer value or a part of the marker is left alone",
  async () => {
    const turnId = host.random.id();
    const marker = { [turnMarkerName]: turnId, TURNKEEPER_CALL: "a" };
    const strangers = await Promise.all([
      started("echo ready; exec sleep 1000", uniqueMarker()),
      started("echo ready; exec sleep 1000", { ...marker, TURNKEEPER_CALL: "ab" }),
      started("echo ready; exec sleep 1000", { [turnMarkerName]: turnId }),
      started("echo ready; exec sleep 1000", {
        OTHER: `${turnMarkerName}=${turnId}`,
        TURNKEEPER_CALL: "a",
      }),
    ]);
    expect(await killMarkedProcesses({ host }, marker)).toMatchObject({ foundCount: 0 });
    for (const { child } of strangers) expect(isRunning(Number(child.pid))).toBe(true);
  },
);

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("it may be repeated, also by several at once", async () => {
  const marker = uniqueMarker();
  const { exit } = await started("echo ready; exec sleep 1000", marker);
  await Promise.all([killMarkedProcesses({ host }, marker), killMarkedProcesses({ host }, marker)]);
  expect(await exit).toEqual([null, "SIGTERM"]);
  expect(await killMarkedProcesses({ host }, marker)).toMatchObject({ supported: true, foundCount: 0 });
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("a caller that carries the marker itself ends the others and lives", async () => {
  const marker = uniqueMarker();
  const script = `
    import { systemHost } from "@turnkeeper/kernel";
    import { killMarkedProcesses } from "@turnkeeper/tools";
    console.log(JSON.stringify(await killMarkedProcesses({ host: systemHost }, ${JSON.stringify(marker)})));`;
  const { exit } = await started("echo ready; exec sleep 1000", marker);
  const child = spawn(
    process.execPath,
    ["--import", "tsx", "--conditions=@turnkeeper/source", "--input-type=module", "-e", script],
    {
      cwd: import.meta.dirname,
      env: { ...process.env, ...marker },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  expect(await once(child, "close")).toEqual([0, null]);
  expect(JSON.parse(output)).toMatchObject({ supported: true, survivors: [] });
  expect(await exit).toEqual([null, "SIGTERM"]);
});

test("a marker without a variable, or with an empty one, is refused: it would match every process", async () => {
  for (const marker of [{}, { [turnMarkerName]: "" }, { "": "x" }, { "A=B": "x" }]) {
    expect(await rejection(killMarkedProcesses({ host }, marker))).toMatchObject({ code: "OPTION_INVALID" });
  }
});

test("where there is no process table the receipt says so", async () => {
  vi.spyOn(processTable, "processTableSupported").mockReturnValue(false);
  expect(await killMarkedProcesses({ host }, uniqueMarker())).toEqual({ supported: false, steps: [] });
});
