/**
 * One process that runs turns on a shared store: node turn-runner.ts PATH NAME TURNS SESSIONS DIES_AFTER MODE
 * TURNS 0: until it is killed. DIES_AFTER: it kills itself in the moment it has acknowledged so many appends; 0: never.
 * MODE `early` acknowledges an append before it is asked for, which no store may do.
 */
import { systemHost } from "@turnkeeper/kernel";
import type { Holder } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { tell } from "./process-output.ts";

const [path = "", name = "", turns = "0", sessions = "1", diesAfter = "0", mode = "honest"] = process.argv.slice(2);
const host = systemHost;
const store = await openSqliteStore(path, { host });
const pause = (ms: number): Promise<void> => new Promise((resolve) => void host.timers.after(ms, resolve));

function holderOf(turnId: string): Holder {
  const { bootId } = host.clock;
  return { holderId: `holder-${turnId}`, instanceId: name, host: "test", bootId, pid: process.pid };
}

/** Short enough that the turns of killed processes are taken over within the test. */
const ttlMs = 250;

let acknowledgedCount = 0;

function acknowledge(sessionId: string, keys: readonly string[]): void {
  tell({ sessionId, keys });
  if (++acknowledgedCount === Number(diesAfter)) process.kill(process.pid, "SIGKILL");
}

async function runTurn(sessionId: string, number: number): Promise<boolean> {
  const turnId = `${name}-${number}`;
  const holder = holderOf(turnId);
  const answer = await store.leases.acquire({ sessionId, holder, ttlMs });
  if (answer.kind !== "granted") return false;
  const grant = { sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken };
  if ((await store.turns.begin(grant, turnId, [])).kind !== "begun") return false;
  for (let step = 0; step < 3; step++) {
    const callId = `${turnId}.${step}`;
    const entries = [
      {
        key: `${callId}/call`,
        body: {
          role: "assistant",
          parts: [
            { type: "text", text: "x".repeat(700) },
            { type: "tool-call", callId, name: "shell", input: null },
          ],
        },
      },
      { key: `${callId}/result`, body: { role: "tool", callId, name: "shell", status: "ok", output: step } },
    ] as const;
    const keys = entries.map(({ key }) => key);
    if (mode === "early") acknowledge(sessionId, keys);
    const appended = await store.transcript.append({ grant, turnId, entries });
    if (appended.kind !== "committed") return false;
    if (mode !== "early") acknowledge(sessionId, keys);
  }
  const end = await store.turns.end({ grant, turnId, outcome: "answered", release: true });
  return end.kind === "ended";
}

tell({ ready: true });
let count = 0;
for (let attempt = 0; turns === "0" || count < Number(turns); attempt++) {
  const sessionId = `s${attempt % Number(sessions)}`;
  if (await runTurn(sessionId, attempt)) count++;
  else await pause(host.random.unit() * 5);
}
await store.close();
