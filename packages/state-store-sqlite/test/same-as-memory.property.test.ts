import { virtualHost } from "@turnkeeper/kernel/testing";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";
import { crashBetweenCalls, randomScript, runScript } from "@turnkeeper/state-store/testing";
import type { ConformanceHarness, ScriptStep } from "@turnkeeper/state-store/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { sqliteHarness } from "./sqlite-harness.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const scriptOf = (seed: number): readonly ScriptStep[] => randomScript(virtualHost({ seed }).random, 80);
const seeds = fc.integer({ min: 1, max: 2 ** 31 });
/** Scripts that meet between them all that is asked for below, twice: what is rare is not left to chance. */
const reaching = [334, 260, 523, 259, 461, 416];

function memoryHarness(): ConformanceHarness {
  const host = virtualHost();
  let store: MemoryStore = createMemoryStore({ host });
  return { host, open: async () => store, reopen: async () => (store = store.reopen()) };
}

test(
  "random scripts, reopened and rebooted between steps, are answered as the memory store answers them",
  { timeout: 120_000 },
  async () => {
    const met: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(seeds, async (seed) => {
        const script = scriptOf(seed);
        const harness = sqliteHarness(folder());
        const { answers, reach } = await runScript(harness, script);
        await harness.close();
        expect(answers).toEqual((await runScript(memoryHarness(), script)).answers);
        for (const [outcome, count] of Object.entries(reach)) met[outcome] = (met[outcome] ?? 0) + count;
      }),
      { numRuns: 60, examples: reaching.map((seed) => [seed]) },
    );
    // A run that never met these has compared nothing of them.
    for (const outcome of [
      "acquire/granted",
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
      "compact/applied",
      "compact/stale-basis",
      "delete/deleted",
      "delete/held",
      "end/ended",
      "keep/kept",
      "keep/kept-end",
      "end/stale-token",
      "offer/accepted",
      "offer/known",
      "offer/conflict",
      "offer/busy",
      "reboot/opened",
      "release/released",
      "renew/renewed",
      "renew/lost",
      "reopen/opened",
      "request-stop/requested",
      "request-stop/stopped",
      "search/found",
      "search/nothing",
      "search/pages",
      "set-title/set",
      "settle-foreign/settled",
      "suspend/suspended",
      "suspend/stale-token",
      "suspend/STORE_CONTRACT",
      "spool/late",
      "spool/replayed",
      "take-steers/taken-some",
      "transplant/imported",
      "withdraw/withdrawn",
    ])
      expect(met[outcome] ?? 0, `${outcome} was hardly met`).toBeGreaterThanOrEqual(2);
  },
);

test("and so they are when the process crashes before every call", { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(seeds, async (seed) => {
      const script = scriptOf(seed).slice(0, 40);
      const harness = sqliteHarness(folder());
      const { answers } = await runScript(crashBetweenCalls(harness), script);
      await harness.close();
      expect(answers).toEqual((await runScript(memoryHarness(), script)).answers);
    }),
    { numRuns: 8 },
  );
});
