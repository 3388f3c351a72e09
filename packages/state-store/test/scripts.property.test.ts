import { AssertionError } from "node:assert";
import { isDeepStrictEqual } from "node:util";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { crashBetweenCalls, randomScript, runScript } from "@turnkeeper/state-store/testing";
import type { ScriptStep } from "@turnkeeper/state-store/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as faulty from "./faulty-stores.ts";
import { memoryHarness } from "./memory-harness.ts";
import type { Fault } from "./memory-harness.ts";

const scriptOf = (seed: number): readonly ScriptStep[] => randomScript(virtualHost({ seed }).random, 80);
const seeds = fc.integer({ min: 1, max: 2 ** 31 });

describe("random scripts", () => {
  test(
    "lose, change and double nothing in memory, whatever their grants, crashes and clocks",
    { timeout: 60_000 },
    async () => {
      const met: Record<string, number> = {};
      await fc.assert(
        fc.asyncProperty(seeds, async (seed) => {
          const { reach } = await runScript(memoryHarness(), scriptOf(seed));
          for (const [outcome, count] of Object.entries(reach)) met[outcome] = (met[outcome] ?? 0) + count;
        }),
        { numRuns: 220 },
      );
      // A run that never met these has shown nothing of them.
      for (const outcome of [
        "acquire/granted",
        "acquire/granted-again",
        "acquire/granted-over-predecessor",
        "acquire/held",
        "acquire/behind",
        "acquire/nothing-to-run",
        "acquire/suspended",
        "acquire/resumed",
        "answer/recorded",
        "answer/already-answered",
        "answer/nothing-asked",
        "append/committed",
        "append/repeated-committed",
        "append/stale-token",
        "append/ENTRY_CONFLICT",
        "append/STORE_CONTRACT",
        "begin/begun",
        "answer-child/committed",
        "child/told",
        "child/settled",
        "child/taken",
        "begin/not-pending",
        "compact/applied",
        "compact/stale-basis",
        "compact/stale-token",
        "delete/deleted",
        "delete/held",
        "end/ended",
        "keep/kept",
        "keep/kept-end",
        "end/repeated-ended",
        "end/stale-token",
        "offer/accepted",
        "offer/known",
        "offer/conflict",
        "offer/busy",
        "release/released",
        "release/stale",
        "renew/renewed",
        "renew/lost",
        "request-stop/requested",
        "request-stop/stopped",
        "settle-foreign/settled",
        "suspend/suspended",
        "suspend/stale-token",
        "suspend/STORE_CONTRACT",
        "spool/late",
        "spool/replayed",
        "settle-foreign/changed",
        "take-steers/taken-some",
        "transplant/imported",
        "withdraw/withdrawn",
        "withdraw/taken",
        "withdraw/settled",
      ]) {
        expect(met[outcome] ?? 0, `${outcome} was hardly met`).toBeGreaterThanOrEqual(3);
      }
    },
  );

  test("answer the same when the process crashes before every call", async () => {
    await fc.assert(
      fc.asyncProperty(seeds, async (seed) => {
        const script = scriptOf(seed);
        const plain = await runScript(memoryHarness(), script);
        const crashing = await runScript(crashBetweenCalls(memoryHarness()), script);
        expect(crashing.answers).toEqual(plain.answers);
      }),
      { numRuns: 30 },
    );
  });

  test("are data: they survive JSON, and every part of one is one", async () => {
    await fc.assert(
      fc.asyncProperty(
        seeds.chain((seed) => fc.tuple(fc.constant(seed), fc.subarray([...scriptOf(seed)]))),
        async ([seed, part]) => {
          expect(JSON.parse(JSON.stringify(scriptOf(seed)))).toEqual(scriptOf(seed));
          const { answers } = await runScript(memoryHarness(), part);
          expect(answers).toHaveLength(part.length);
        },
      ),
      { numRuns: 30 },
    );
  });

  test("find every faulty store", { timeout: 60_000 }, async () => {
    for (const [name, fault] of Object.entries(faulty)) {
      expect(await isFound(fault), `no script found ${name}`).toBe(true);
    }
  });
});

/** Whether one of some scripts fails on a store with this fault, or is answered otherwise than by the reference. */
async function isFound(fault: Fault): Promise<boolean> {
  for (let seed = 1; seed <= 120; seed++) {
    const script = scriptOf(seed);
    const reference = await runScript(memoryHarness(), script);
    try {
      const { answers } = await runScript(memoryHarness(fault), script);
      if (!isDeepStrictEqual(answers, reference.answers)) return true;
    } catch (error) {
      if (!(error instanceof AssertionError)) throw error;
      return true;
    }
  }
  return false;
}
