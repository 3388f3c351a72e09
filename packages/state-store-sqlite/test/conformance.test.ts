import { conformanceCases, crashBetweenCalls } from "@turnkeeper/state-store/testing";
import { describe, expect, test } from "vitest";
import { sqliteHarness } from "./sqlite-harness.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

describe("the SQLite store keeps every rule of the contract", () => {
  for (const { id, title, run } of conformanceCases) {
    test(`${id}: ${title}`, async () => {
      const harness = sqliteHarness(folder());
      await run(harness);
      expect(harness.host.pendingTimerCount()).toBe(0);
      await harness.close();
    });
  }
});

describe("and keeps it when the process crashes before every call", () => {
  for (const { id, title, run } of conformanceCases) {
    test(`${id}: ${title}`, async () => {
      const harness = sqliteHarness(folder());
      await run(crashBetweenCalls(harness));
      await harness.close();
    });
  }
});
