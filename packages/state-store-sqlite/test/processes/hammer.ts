/**
 * A process that appends as fast as it is let, on a session of its own: node hammer.ts PATH NAME MS
 * In the end it tells what was acknowledged, and how late its event loop was.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { grantTo, says } from "../scene.ts";
import { tell } from "./process-output.ts";

const [path = "", name = "", ms = "1000"] = process.argv.slice(2);
const store = await openSqliteStore(path, { host: systemHost });
const grant = await grantTo(store, name, `session-${name}`);
await store.turns.begin(grant, "turn", []);
tell({ ready: true });
await new Promise((resolve) => process.stdin.once("data", resolve));

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const keys: string[] = [];
const untilMs = systemHost.clock.monotonicMs() + Number(ms);
while (systemHost.clock.monotonicMs() < untilMs) {
  const key = `${name}-${keys.length}`;
  const answer = await store.transcript.append({ grant, turnId: "turn", entries: [says(key)] });
  if (answer.kind !== "committed") throw new Error(`The append was answered ${answer.kind}.`);
  keys.push(key);
  await new Promise((resolve) => setImmediate(resolve));
}
delay.disable();
process.stdin.pause();
tell({ keys, p99Ms: delay.percentile(99) / 1e6, maxMs: delay.max / 1e6 });
await store.close();
