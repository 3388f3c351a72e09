import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { expect, test } from "vitest";
import { startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const sessionIds = ["s0", "s1"] as const;

interface Step {
  readonly sessionId: string;
  readonly keys: readonly string[];
}

interface Death {
  readonly after: number;
  /** `itself`: in the very moment of the last acknowledgement. `parent`: somewhere behind it. */
  readonly by: "itself" | "parent";
  readonly mode?: "honest" | "early";
}

/** Runs turns until the process is killed, and answers all that it acknowledged. */
async function killed(path: string, name: string, { after, by, mode = "honest" }: Death): Promise<Step[]> {
  const diesAfter = String(by === "itself" ? after : 0);
  const runner = startProcess("turn-runner", [path, name, "0", String(sessionIds.length), diesAfter, mode]);
  const acknowledged: Step[] = [];
  for await (const line of runner.lines) {
    if ("keys" in line) acknowledged.push(line as unknown as Step);
    if (by === "parent" && acknowledged.length >= after) runner.kill();
  }
  const { signal, stderr } = await runner.ended;
  expect(signal, `it wrote to stderr: ${stderr}`).toBe("SIGKILL");
  return acknowledged;
}

/** The keys that are stored; every step of two entries must be there whole or not at all. */
async function storedKeys(store: StateStore): Promise<Set<string>> {
  const stored = new Set<string>();
  for (const sessionId of sessionIds) {
    const records = await store.sessions.records(sessionId);
    if (!records) continue;
    expect(verifyRecords(records)).toEqual([]);
    for (const entry of records.entries) stored.add(`${sessionId}:${entry.key}`);
    for (const { key } of records.entries)
      if (key.endsWith("/call")) expect(stored).toContain(`${sessionId}:${key.replace("/call", "/result")}`);
  }
  return stored;
}

async function lostKeys(path: string, acknowledged: readonly Step[]): Promise<string[]> {
  const store = await openSqliteStore(path, { host: systemHost });
  const stored = await storedKeys(store);
  await store.close();
  return acknowledged
    .flatMap(({ sessionId, keys }) => keys.map((key) => `${sessionId}:${key}`))
    .filter((key) => !stored.has(key));
}

test("APPEND-3: every acknowledged append is there after kill -9 under load, and none is half there", async () => {
  const path = join(folder(), "state.db");
  const acknowledged: Step[] = [];
  for (let round = 0; round < 12; round++) {
    // Two processes at once: the one that dies first dies while the other writes.
    const [left, right] = await Promise.all([
      killed(path, `left-${round}`, { after: 1 + ((round * 7) % 23), by: "itself" }),
      killed(path, `right-${round}`, { after: 1 + ((round * 5) % 17), by: "parent" }),
    ]);
    acknowledged.push(...left, ...right);
    expect(await lostKeys(path, acknowledged)).toEqual([]);
  }
  expect(acknowledged.length).toBeGreaterThan(100);
}, 180_000);

test("APPEND-3 control: without a commit before the acknowledgement kill -9 loses an acknowledged append", async () => {
  const path = join(folder(), "state.db");
  const acknowledged = await killed(path, "early", { after: 4, by: "itself", mode: "early" });
  expect(await lostKeys(path, acknowledged)).toEqual(["s1:early-1.0/call", "s1:early-1.0/result"]);
}, 60_000);
