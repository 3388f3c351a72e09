import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { z } from "zod";

const tally = z.object({
  childCount: z.number(),
  referenceCount: z.number(),
  aliveCount: z.number(),
  grownBytes: z.number(),
  timerCount: z.number(),
});

async function fanOut(...args: readonly string[]): Promise<z.infer<typeof tally>> {
  const script = fileURLToPath(new URL("processes/fan-out.ts", import.meta.url));
  const node = ["--expose-gc", "--import", "tsx", "--conditions=@turnkeeper/source", script, ...args];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, node);
  expect(stderr).toBe("");
  return tally.parse(JSON.parse(stdout));
}

test(
  "TURN-1: of a thousand children that have ended nothing is reachable, in a process that goes on",
  { timeout: 180_000 },
  async () => {
    const { childCount, referenceCount, aliveCount, grownBytes, timerCount } = await fanOut("20", "50");
    expect(childCount).toBe(1000);
    // Prompts, signals and tool contexts of each.
    expect(referenceCount).toBeGreaterThan(5000);
    expect(aliveCount).toBe(0);
    // Each had 50 kB and more to say. What stays is the parents' own: calls, results, settled notices, fencing tokens.
    expect(grownBytes / childCount).toBeLessThan(12_000);
    expect(timerCount).toBeLessThanOrEqual(2);
  },
);

test("TURN-1 control: without letting go of what children had, it is reachable", { timeout: 60_000 }, async () => {
  const { childCount, aliveCount } = await fanOut("1", "10", "keeping");
  expect(childCount).toBe(10);
  expect(aliveCount).toBeGreaterThanOrEqual(10);
});
