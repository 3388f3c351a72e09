import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { expect, test } from "vitest";
import { outputOf, startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const processCount = 3;
const turnsEach = 25;
const entriesOfTurn = 6;

test("processes that race for one session leave a transcript of whole turns, under tokens that only grow", async () => {
  const path = join(folder(), "state.db");
  const names = Array.from({ length: processCount }, (_, index) => `process-${index}`);
  await Promise.all(names.map((name) => outputOf(startProcess("turn-runner", [path, name, String(turnsEach), "1"]))));

  const store = await openSqliteStore(path, { host: systemHost });
  const records = await store.sessions.records("s0");
  await store.close();
  if (!records) throw new Error("The session is gone.");
  expect(verifyRecords(records)).toEqual([]);

  const answered = records.turns.filter((turn) => turn.state === "ended" && turn.outcome === "answered");
  expect(answered).toHaveLength(processCount * turnsEach);
  for (const name of names) expect(answered.filter(({ turnId }) => turnId.startsWith(name))).toHaveLength(turnsEach);

  // A turn that was interleaved with another would come up twice here.
  const inOrder: string[] = [];
  for (const { turnId } of records.entries) if (inOrder.at(-1) !== turnId) inOrder.push(turnId);
  expect(inOrder).toEqual(records.turns.map(({ turnId }) => turnId).filter((turnId) => inOrder.includes(turnId)));
  for (const { turnId } of answered)
    expect(records.entries.filter((entry) => entry.turnId === turnId)).toHaveLength(entriesOfTurn);

  const tokens = records.turns.map(({ fencingToken }) => fencingToken);
  expect(new Set(tokens).size).toBe(tokens.length);
}, 120_000);
