import { virtualHost } from "@turnkeeper/kernel/testing";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { createAgent, withTurn } from "../src/index.ts";
import type { AgentOptions } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";

/** What a caller without a type checker may pass. */
const misspelt = (options: object): AgentOptions => options;

const wrong: readonly (readonly [string, AgentOptions])[] = [
  ["lease.ttlMs", { lease: { ttlMs: 99 } }],
  ["lease.ttlMs", { lease: { ttlMs: Number.NaN } }],
  ["lease.ttlMs", { lease: { ttlMs: Number.POSITIVE_INFINITY } }],
  ["lease.renewEveryMs", { lease: { ttlMs: 1000, renewEveryMs: 500 } }],
  ["lease.renewEveryMs", { lease: { renewEveryMs: 0 } }],
  ["lease.waitMs", misspelt({ lease: { waitMs: 5 } })],
  ["liveness.timeoutMs", { liveness: { timeoutMs: 0 } }],
  ["liveness.pollMs", { liveness: { pollMs: Number.NaN } }],
  ["liveness.timeout", misspelt({ liveness: { timeout: 5 } })],
  ["compaction.treshold", misspelt({ compaction: { treshold: 0.5 } })],
  ["waitMs", { waitMs: -1 }],
  ["wait", misspelt({ wait: 5 })],
];

it.each(wrong)("an agent is not made with a wrong option, and the error names it: %s", async (option, options) => {
  const host = virtualHost();
  const making = createAgent({ store: createMemoryStore({ host }), model: scriptedModel([]), host }, options);
  await expect(making).rejects.toMatchObject({ code: "OPTION_INVALID", context: { option } });
  await expect(making).rejects.toThrow(option);
  expect(host.pendingTimerCount()).toBe(0);
});

it.each(wrong)("withTurn with a wrong option stores nothing: %s", async (option, options) => {
  const host = virtualHost();
  const store = createMemoryStore({ host });
  const running = withTurn({ store, host }, "s", "hello", async () => "never", options);
  await expect(running).rejects.toMatchObject({ code: "OPTION_INVALID", context: { option } });
  expect((await store.sessions.list()).sessions).toEqual([]);
  expect(host.pendingTimerCount()).toBe(0);
});
