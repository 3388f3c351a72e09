/** A session that is far larger than the memory of the process that goes on with it. */
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import type { EntryDraft } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { expect, it } from "vitest";
import { makeHome, runShell } from "./outside/built-cli.ts";

const mib = 1024 * 1024;
/** V8's old space in MiB: room for the program and a window of a transcript, and for half of the session. */
const env = { NODE_OPTIONS: "--max-old-space-size=32" };

/** 4,000 calls with results of 16 KiB, of which a summary has taken the place. */
async function makeHugeSession(file: string): Promise<void> {
  const store = await openSqliteStore(file, { host: systemHost });
  const from = { instanceId: "builder", pid: 1, host: "here", bootId: systemHost.clock.bootId };
  const holder = { ...from, holderId: "builder" };
  const runner = { ...from, runnerId: "builder" };
  await store.inbox.offer({ sessionId: "s", inputId: "i", text: "Read everything.", onBusy: "wait", runner });
  const begin = { turnId: "t", runnerId: "builder" };
  const granted = await store.leases.acquire({ sessionId: "s", holder, ttlMs: 60_000, begin });
  if (granted.kind !== "granted") throw new Error(`The session is ${granted.kind}.`);
  const grant = { sessionId: "s", holderId: "builder", fencingToken: granted.fencingToken };
  const text = "many words ".repeat(1500);
  for (let batch = 0; batch < 40; batch++) {
    const entries = Array.from({ length: 100 }, (_one, index): readonly EntryDraft[] => {
      const callId = `call-${batch}-${index}`;
      return [
        { key: callId, body: { role: "assistant", parts: [{ type: "tool-call", callId, name: "read", input: {} }] } },
        { key: `${callId}/result`, body: { role: "tool", callId, name: "read", status: "ok", output: text } },
      ];
    });
    await store.transcript.append({ grant, turnId: "t", entries: entries.flat() });
  }
  const throughSeq = (await store.transcript.load("s", { limit: 1 })).entries[0]?.seq ?? 0;
  const summary = { key: "summary", body: { role: "summary", text: "All of it was read." } } as const;
  const basis = { throughSeq, compactionCount: 0 };
  expect(await store.transcript.applyCompaction({ grant, turnId: "t", basis, summary })).toMatchObject({
    kind: "applied",
  });
  await store.turns.end({ grant, turnId: "t", outcome: "answered", release: true });
  await store.close();
}

it("a session that is larger than the memory of its process goes on, and is exported whole", async () => {
  const home = makeHome("model: demo/echo\n");
  const file = path.join(home, "state.db");
  await makeHugeSession(file);
  expect(statSync(file).size).toBeGreaterThan(62 * mib);
  const script =
    "set -eo pipefail; $CLI run 'And now?' --session s --json | tail -n 1; $CLI sessions export s | tee exported.jsonl | wc -l";
  const { code, stdout, stderr } = await runShell(script, { home, env });
  expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.stringContaining('"outcome":"answered"') });
  const exported = readFileSync(path.join(home, "exported.jsonl"), "utf8");
  // Both entries of each call, and a few more lines; all of their text.
  expect(exported.split("\n").length).toBeGreaterThan(8000);
  expect(exported.length).toBeGreaterThan(62 * mib);
});
