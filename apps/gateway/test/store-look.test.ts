import { CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { StoreLook } from "../src/store-look.ts";

it("a store that says nothing is told as silent after a second; however many ask, it is asked once", async () => {
  const host = virtualHost();
  const store = createMemoryStore({ host });
  const look = new StoreLook(store, host.timers);
  const check = store.check.bind(store);
  let askedCount = 0;
  let answer = (): void => {};
  store.check = () => {
    askedCount++;
    return new Promise((resolve) => (answer = resolve));
  };
  const told: unknown[] = [];
  for (let probe = 0; probe < 3; probe++) look.answers().catch((error: unknown) => told.push(error));
  await host.advance(999);
  expect(told).toEqual([]);
  await host.advance(1);
  expect(told).toMatchObject([1, 2, 3].map(() => ({ status: 503, code: "store_silent" })));
  expect(askedCount).toBe(1);
  answer();
  await host.settle();
  store.check = check;
  await look.answers();
  expect(host.pendingTimerCount()).toBe(0);
});

it("a refusal that comes after its askers have left harms nobody, and the next one is told it", async () => {
  const host = virtualHost();
  const store = createMemoryStore({ host });
  const look = new StoreLook(store, host.timers);
  let refuse = (): void => {};
  store.check = () =>
    new Promise((_resolve, reject) => (refuse = () => reject(new CodedError("STORE_BUSY", "The server is away."))));
  const left = look.answers();
  await Promise.all([host.advance(1_000), expect(left).rejects.toMatchObject({ code: "store_silent" })]);
  refuse();
  await host.settle();
  const next = look.answers();
  refuse();
  await expect(next).rejects.toMatchObject({ code: "STORE_BUSY" });
  expect(host.pendingTimerCount()).toBe(0);
});
