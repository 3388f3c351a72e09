import { virtualHost } from "@turnkeeper/kernel/testing";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";
import { crashBetweenCalls, randomScript, runScript } from "@turnkeeper/state-store/testing";
import type { ConformanceHarness, ScriptStep } from "@turnkeeper/state-store/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { noServer, postgresHarness } from "./postgres-harness.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
/** A server's clock knows no boots of the clients' machines. */
const scriptOf = (seed: number): readonly ScriptStep[] =>
  randomScript(virtualHost({ seed }).random, 80).filter(({ kind }) => kind !== "reboot");
const seeds = fc.integer({ min: 1, max: 2 ** 31 });

function memoryHarness(): ConformanceHarness {
  // Instants that a store tells bear the name of its clock.
  const host = virtualHost({ bootId: "server" });
  let store: MemoryStore = createMemoryStore({ host });
  return { host, open: async () => store, reopen: async () => (store = store.reopen()) };
}

test.skipIf(noServer)(
  "random scripts, reopened between steps, are answered as the memory store answers them",
  { timeout: 240_000 },
  async () => {
    const met: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(seeds, async (seed) => {
        const script = scriptOf(seed);
        const harness = await postgresHarness(folder());
        const { answers, reach } = await runScript(harness, script);
        await harness.close();
        expect(answers).toEqual((await runScript(memoryHarness(), script)).answers);
        for (const [outcome, count] of Object.entries(reach)) met[outcome] = (met[outcome] ?? 0) + count;
      }),
      { numRuns: 30, endOnFailure: true },
    );
    // A run that never met these has compared nothing of them.
    for (const outcome of [
      "acquire/granted",
      "acquire/held",
      "append/committed",
      "append/stale-token",
      "begin/begun",
      "end/ended",
      "keep/kept",
      "offer/accepted",
      "offer/known",
      "renew/renewed",
      "reopen/opened",
      "search/found",
      "withdraw/withdrawn",
    ])
      expect(met[outcome] ?? 0, `${outcome} was hardly met`).toBeGreaterThanOrEqual(1);
  },
);

test.skipIf(noServer)("and so they are when the process crashes before every call", { timeout: 240_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(seeds, async (seed) => {
      const script = scriptOf(seed).slice(0, 40);
      const harness = await postgresHarness(folder());
      const { answers } = await runScript(crashBetweenCalls(harness), script);
      await harness.close();
      expect(answers).toEqual((await runScript(memoryHarness(), script)).answers);
    }),
    { numRuns: 2 },
  );
});
