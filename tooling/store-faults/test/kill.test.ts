import { expect, test } from "vitest";
import { runKills } from "../src/kill/kill-run.ts";
import { usesWorker } from "./worker.ts";

const worker = usesWorker();
const crew = { processCount: 3, sessionCount: 16, laneCount: 8, seed: 7 } as const;

test("APPEND-3: a store whose processes are killed at random keeps all it acknowledged, no half step, and every token", async () => {
  const { findings, ...reach } = await runKills(worker(), { ...crew, rounds: 100, mode: "honest" });
  process.stdout.write(`${JSON.stringify(reach)}\n`);
  expect(findings).toEqual([]);
  expect(reach.kills).toBeGreaterThanOrEqual(100);
  expect(reach.audits).toBeGreaterThanOrEqual(8);
  expect(reach.appends).toBeGreaterThan(500);
  expect(reach.kept).toBeGreaterThan(50);
  // Else nobody was ever hit in the middle of anything.
  expect(reach.cutTurns).toBeGreaterThan(50);
}, 600_000);

test("APPEND-3 control: without a commit before the acknowledgement it fails, as the audit finds", async () => {
  const { findings } = await runKills(worker(), { ...crew, rounds: 30, mode: "early" });
  expect(findings.map(({ kind }) => kind)).toContain("lost");
}, 120_000);
