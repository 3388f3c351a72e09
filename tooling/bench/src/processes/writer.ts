/**
 * A process that appends one message after the other to one file for a while: node writer.js SETTINGS; answers with a
 * `WriterReport`.
 */
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { setImmediate as nextLoop } from "node:timers/promises";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { beginTurn, kilobyte, userDraft } from "../lease-holder.ts";
import { openRaw, openTransaction } from "../raw-database.ts";

export interface WriterSettings {
  readonly kind: "ours" | "raw";
  readonly path: string;
  readonly durationMs: number;
}

export interface WriterReport {
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
  /** For one append, failed or not. */
  readonly longestWaitMs: number;
  readonly appendsPerSecond: number;
  /** Appends that were given up with an error, the first of which is told. */
  readonly lostCount: number;
  readonly firstError?: string;
}

interface Writer {
  append(): unknown;
  close(): unknown;
}

function openRawWriter(path: string): Writer {
  const database = openRaw(path, "FULL");
  database.exec("CREATE TABLE IF NOT EXISTS noise (noise_id INTEGER PRIMARY KEY, body TEXT NOT NULL)");
  const add = database.prepare("INSERT INTO noise (body) VALUES (?)");
  const transaction = openTransaction(database);
  return { append: () => transaction(() => add.run(kilobyte)), close: () => database.close() };
}

async function openOurs(path: string): Promise<Writer> {
  const store = await openSqliteStore(path, { host: systemHost });
  const running = await beginTurn(store, systemHost.random.id());
  let count = 0;
  return {
    append: async () => {
      const answer = await store.transcript.append({ ...running, entries: [userDraft(`entry-${++count}`)] });
      if (answer.kind !== "committed") throw new Error(`The store answered ${answer.kind}.`);
    },
    close: () => store.close(),
  };
}

const { kind, path, durationMs } = JSON.parse(process.argv[2] ?? "{}") as WriterSettings;
const writer = kind === "ours" ? await openOurs(path) : openRawWriter(path);
process.send?.("ready");
await new Promise<void>((resolve) => void process.once("message", () => resolve()));

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const startedMs = performance.now();
const errors: unknown[] = [];
let attemptCount = 0;
let longestWaitMs = 0;
while (performance.now() - startedMs < durationMs) {
  attemptCount++;
  const askedMs = performance.now();
  try {
    await writer.append();
  } catch (error) {
    errors.push(error);
  }
  longestWaitMs = Math.max(longestWaitMs, performance.now() - askedMs);
  await nextLoop();
}
const seconds = (performance.now() - startedMs) / 1_000;
delay.disable();
await writer.close();
const report: WriterReport = {
  delayP99Ms: delay.percentile(99) / 1e6,
  delayMaxMs: delay.max / 1e6,
  longestWaitMs,
  appendsPerSecond: (attemptCount - errors.length) / seconds,
  lostCount: errors.length,
  ...(errors.length > 0 ? { firstError: String(errors[0]) } : {}),
};
process.send?.(report, () => process.disconnect());
