import { describe, expect, test } from "vitest";
import { conformanceCases, crashBetweenCalls, leaseCases } from "@turnkeeper/state-store/testing";
import { memoryHarness } from "./memory-harness.ts";

describe("the memory store keeps every rule of the contract", () => {
  for (const { id, title, run } of conformanceCases) {
    test(`${id}: ${title}`, async () => {
      const harness = memoryHarness();
      await run(harness);
      expect(harness.host.pendingTimerCount()).toBe(0);
    });
  }
});

describe("and keeps it when the process crashes before every call", () => {
  for (const { id, title, run } of conformanceCases) {
    test(`${id}: ${title}`, () => run(crashBetweenCalls(memoryHarness())));
  }
});

describe("the cases", () => {
  test("have ids of their own, each beginning with what it serves", () => {
    const ids = conformanceCases.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids)
      expect(id).toMatch(
        /^(LEASE-\d|APPEND-\d|INBOX-\d|COMP-\d|PAIR-\d|SPOOL-\d|CHILD|INBOX|QUEUE|TURN|APPROVAL|SESSION)/,
      );
  });

  test("that serve a lease invariant use the lease port alone", async () => {
    expect(leaseCases.map(({ id }) => id)).toEqual(
      conformanceCases.map(({ id }) => id).filter((id) => id.startsWith("LEASE-")),
    );
    for (const { run } of leaseCases) {
      const { host, open, reopen } = memoryHarness();
      const leasesOnly = (store: Awaited<ReturnType<typeof open>>) => ({ leases: store.leases });
      await run({ host, open: () => open().then(leasesOnly), reopen: () => reopen().then(leasesOnly) });
    }
  });
});
