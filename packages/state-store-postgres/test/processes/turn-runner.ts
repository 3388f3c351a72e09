/** One process that runs turns on a shared store: node turn-runner.ts URL SCHEMA NAME TURNS */
import { systemHost } from "@turnkeeper/kernel";
import type { Holder } from "@turnkeeper/state-store";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import { tell } from "./process-output.ts";

const [url = "", schema = "", name = "", turns = "0"] = process.argv.slice(2);
const host = systemHost;
const store = await openPostgresStore(url, { host }, { schema, connectionsMax: 2 });
const pause = (ms: number): Promise<void> => new Promise((resolve) => void host.timers.after(ms, resolve));

function holderOf(turnId: string): Holder {
  const { bootId } = host.clock;
  return { holderId: `holder-${turnId}`, instanceId: name, host: "test", bootId, pid: process.pid };
}

/** Long enough for a busy machine: a turn that loses its lease is not counted. */
const ttlMs = 2_000;

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
    const appended = await store.transcript.append({ grant, turnId, entries });
    if (appended.kind !== "committed") return false;
  }
  const end = await store.turns.end({ grant, turnId, outcome: "answered", release: true });
  return end.kind === "ended";
}

tell({ ready: true });
let count = 0;
for (let attempt = 0; count < Number(turns); attempt++) {
  if (await runTurn("s0", attempt)) count++;
  else await pause(host.random.unit() * 5);
}
await store.close();
