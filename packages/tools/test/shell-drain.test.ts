import { systemHost } from "@turnkeeper/kernel";
import { expect, test } from "vitest";
import { createShellTool, killMarkedProcesses } from "../src/index.ts";
import { deps, hasProcessTable, isRunning, processIdsIn, workbench, turnMarkerName } from "./workbench.ts";

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("a background process that holds the output open does not hold up the answer", async () => {
  const { context, folder, turnId } = await workbench();
  const shell = createShellTool(deps, { drainMs: 20 });
  const answer = await shell.execute({ command: "sleep 1000 & echo $! >background; echo started" }, context);
  expect(answer).toBe(
    "started\n[exit code 0]\n[a background process still holds the output open; what it writes from now on is lost]",
  );
  const [background = 0] = await processIdsIn(folder, "background");
  expect(isRunning(background)).toBe(true);
  await killMarkedProcesses({ host: systemHost }, { [turnMarkerName]: turnId });
  expect(isRunning(background)).toBe(false);
});

test("what comes within the drain is in the answer", async () => {
  const { context } = await workbench();
  const shell = createShellTool(deps, { drainMs: 60_000 });
  const answer = await shell.execute({ command: "(sleep 0.05; echo late) & echo early" }, context);
  expect(answer).toBe("early\nlate\n[exit code 0]");
});

test("a background process that writes to a file lives on without a remark", async () => {
  const { context } = await workbench();
  const shell = createShellTool(deps, { drainMs: 60_000 });
  expect(await shell.execute({ command: "sleep 1000 >log 2>&1 & echo started" }, context)).toBe(
    "started\n[exit code 0]",
  );
});

test("all that the command itself wrote is in the answer, also the last 100 KiB before its exit", async () => {
  const { context } = await workbench();
  const shell = createShellTool(deps, { drainMs: 0, outputBytesMax: 1_000_000 });
  const answer = await shell.execute({ command: "head -c 100000 /dev/zero | tr '\\0' x" }, context);
  expect(answer).toBe(`${"x".repeat(100_000)}\n[exit code 0]`);
});
