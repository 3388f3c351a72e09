import { verifyRecords } from "@turnkeeper/state-store";
import { afterEach, beforeEach, expect } from "vitest";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";

/** Hands each test of a file a bench of its own; afterwards its store keeps every rule and nothing is left (TURN-1). */
export function benchOfEachTest(take: (bench: Bench) => void): void {
  let bench: Bench;
  beforeEach(() => {
    bench = createBench();
    take(bench);
  });
  afterEach(async () => {
    for (const { sessionId } of (await bench.store.sessions.list()).sessions) {
      const records = await bench.store.sessions.records(sessionId);
      expect(records && verifyRecords(records)).toEqual([]);
    }
    await bench.close();
    expect(bench.host.pendingTimerCount()).toBe(0);
  });
}
