import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import type { EntryDraft } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stepKeys } from "../src/acknowledgement.ts";
import { auditStore } from "../src/audit.ts";
import { Expectation } from "../src/expectation.ts";

const sessionId = "session-0";
const identity = { instanceId: "i", host: "test", bootId: "boot", pid: 1 };
const keys = stepKeys("step", 2);

let folder: string;
let path: string;
let expectation: Expectation;

/** A store with one whole turn, all of it acknowledged. */
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "audit-"));
  path = join(folder, "state.db");
  expectation = new Expectation("granted", [sessionId]);
  const store = await openSqliteStore(path, { host: systemHost });
  const runner = { ...identity, runnerId: "r" };
  await store.inbox.offer({ sessionId, inputId: "input", text: "t", onBusy: "wait", runner });
  const begin = { turnId: "turn", runnerId: "r" };
  await store.leases.acquire({ sessionId, holder: { ...identity, holderId: "h" }, ttlMs: 60_000, begin });
  const grant = { sessionId, holderId: "h", fencingToken: 1 };
  const entries = keys.map((key): EntryDraft => ({ key, body: { role: "notice", text: key } }));
  await store.transcript.append({ grant, turnId: "turn", entries });
  await store.turns.end({ grant, turnId: "turn", outcome: "answered", release: true });
  await store.close();
  const told = { sessionId, fencingToken: 1 };
  expectation.add({ told: "accepted", sessionId, inputId: "input" });
  expectation.add({ told: "taken", ...told, turnId: "turn", inputIds: ["input"] });
  expectation.add({ told: "appended", ...told, keys, settledInputIds: [] });
  expectation.add({ told: "ended", ...told, turnId: "turn", inputIds: ["input"] });
});

afterEach(() => rmSync(folder, { recursive: true }));

function meddle(sql: string): void {
  const database = new Database(path);
  database.exec(sql);
  database.close();
}

const kinds = async (): Promise<string[]> => (await auditStore(path, expectation)).map(({ kind }) => kind);

test("a store that has all it acknowledged is clean, and stays so", async () => {
  expect(await auditStore(path, expectation)).toEqual([]);
  expect(await auditStore(path, expectation)).toEqual([]);
});

test("an append that was acknowledged and never came is lost", async () => {
  expectation.add({ told: "appended", sessionId, fencingToken: 1, keys: stepKeys("other", 2), settledInputIds: [] });
  expect(await kinds()).toEqual(["lost", "lost"]);
});

test("an input, a settlement and an end that were acknowledged and never came are lost", async () => {
  expectation.add({ told: "accepted", sessionId, inputId: "other" });
  expectation.add({ told: "appended", sessionId, fencingToken: 1, keys: [], settledInputIds: ["other"] });
  expectation.add({ told: "ended", sessionId, fencingToken: 1, turnId: "other", inputIds: [] });
  expect(await kinds()).toEqual(["lost", "lost", "lost"]);
});

test("a whole session that is gone is lost", async () => {
  expectation.add({ told: "accepted", sessionId: "session-1", inputId: "input" });
  expect(await kinds()).toEqual(["lost"]);
});

test("a step with one of its entries is half there, though nobody acknowledged it", async () => {
  const unasked = new Expectation("granted", [sessionId]);
  meddle(`DELETE FROM entry WHERE key = '${keys[0]}'`);
  expect((await auditStore(path, unasked)).map(({ kind }) => kind)).toContain("half");
});

test("a token that would be granted twice is found", async () => {
  meddle("DELETE FROM lease");
  expect(await kinds()).toContain("token");
});

test("a rule that its rows break is found", async () => {
  meddle("UPDATE entry SET digest = 'wrong'");
  expect(await kinds()).toContain("rule");
});

test("a file that is no database any more is unopenable", async () => {
  writeFileSync(path, "no database");
  expect(await kinds()).toEqual(["unopenable"]);
});
