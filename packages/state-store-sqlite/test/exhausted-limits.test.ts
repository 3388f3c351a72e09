import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { expect, test } from "vitest";
import { keysOf, says, turnOf } from "./scene.ts";
import { outputOf, startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const pathOf = (): string => join(folder(), "state.db");

test("a process without a free descriptor goes on with the store that it has, and opens no other until it has some", async () => {
  const told = await outputOf(startProcess("limited-store", [pathOf(), "descriptors"], { ulimit: "-n 128" }));
  expect(told).toEqual([
    {
      takenCount: expect.any(Number),
      append: "done",
      read: "done",
      openAnother: "STORE_UNAVAILABLE",
    },
    { openAnother: "done", append: "done" },
  ]);
  expect(told[0]?.["takenCount"]).toBeGreaterThan(10);
  const store = await openSqliteStore(pathOf(), { host: systemHost });
  expect(await keysOf(store)).toEqual(["before", "without", "after"]);
  await store.close();
}, 180_000);

test("a process whose files may not grow is told so, loses nothing, and leaves a store that others go on with", async () => {
  // In blocks of 512 bytes, as POSIX has it.
  const [told] = await outputOf(startProcess("limited-store", [pathOf(), "file-size"], { ulimit: "-f 1000" }));
  expect(told).toMatchObject({ outcome: expect.stringMatching(/^STORE_(IO|FULL)$/) });
  const stored = told?.["stored"] as readonly string[];
  expect(stored.length).toBeGreaterThan(3);
  expect(told?.["found"]).toEqual(stored);
  expect(told).toMatchObject({
    kept: "done",
    refusal: {
      code: "STORE_FULL",
      message: expect.stringMatching(
        /no file of this process may grow further \(EFBIG\).*In no place are now.* lost\.$/,
      ),
    },
  });
  const store = await openSqliteStore(pathOf(), { host: systemHost });
  const { grant, turnId } = await turnOf(store, "next").catch(async () => {
    const lease = await store.leases.read("session-1");
    if (!lease) throw new Error("Nobody holds the session, and nobody may have it.");
    const dead = { sessionId: "session-1", holderId: lease.holder.holderId, fencingToken: lease.fencingToken };
    await store.turns.settleForeign(dead);
    return turnOf(store, "next");
  });
  expect(await store.transcript.append({ grant, turnId, entries: [says("next")] })).toMatchObject({
    kind: "committed",
  });
  const keys = await keysOf(store);
  expect(keys.slice(0, stored.length)).toEqual(stored);
  // An append that failed in its commit may be there all the same; the step from the spool comes behind it.
  expect(keys.slice(-2)).toEqual(["kept", "next"]);
  await store.close();
}, 180_000);
