import { conformanceCases, crashBetweenCalls } from "@turnkeeper/state-store/testing";
import { describe, expect, test } from "vitest";
import { noServer, postgresHarness } from "./postgres-harness.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

/** The cases of a clock that knows boots and suspends say nothing of a server's (`needs` tells which). */
const cases = conformanceCases.filter(({ needs }) => needs !== "boot-clock");

describe.skipIf(noServer)("the PostgreSQL store keeps every rule of the contract", () => {
  for (const { id, title, run } of cases) {
    test(`${id}: ${title}`, async () => {
      const harness = await postgresHarness(folder());
      await run(harness);
      await harness.close();
      expect(harness.host.pendingTimerCount()).toBe(0);
    });
  }
});

/**
 * A search writes nothing that a crash could lose. Of the rest one in four, with a new process and its connections before
 * every call: all of them take five minutes, which TURNKEEPER_EVERY_CRASH=1 gives them. The property with crashes beside
 * this file goes through all methods in every run.
 */
const written = cases
  .filter(({ id }) => !id.startsWith("SESSION-SEARCH"))
  .filter((_one, index) => process.env["TURNKEEPER_EVERY_CRASH"] === "1" || index % 4 === 0);

describe.skipIf(noServer)("and keeps it when the process crashes before every call", () => {
  for (const { id, title, run } of written) {
    test(`${id}: ${title}`, async () => {
      const harness = await postgresHarness(folder());
      await run(crashBetweenCalls(harness));
      await harness.close();
    });
  }
});
