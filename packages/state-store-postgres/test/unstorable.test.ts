import { randomBytes } from "node:crypto";
import { systemHost } from "@turnkeeper/kernel";
import { expect, test } from "vitest";
import { freshSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { openHandle } from "./scene.ts";

const identity = { instanceId: "instance-1", host: "host-1", bootId: "boot-1", pid: 101 };

test.skipIf(noServer)(
  "what no index can hold is the caller's fault: a store that fails would have it spooled",
  async () => {
    const store = await openHandle(serverUrl, { schema: freshSchema() }, systemHost);
    const runner = { ...identity, runnerId: "runner" };
    await store.inbox.offer({ sessionId: "s", inputId: "input", text: "hello", onBusy: "wait", runner });
    const holder = { ...identity, holderId: "holder" };
    const begin = { turnId: "turn", runnerId: "runner" };
    const granted = await store.leases.acquire({ sessionId: "s", holder, ttlMs: 60_000, begin });
    if (granted.kind !== "granted") throw new Error(`It was answered ${granted.kind}.`);
    const grant = { sessionId: "s", holderId: "holder", fencingToken: granted.fencingToken };
    // Random, since a key that can be compressed has room.
    const callId = randomBytes(4000).toString("base64");
    const body = { role: "assistant", parts: [{ type: "tool-call", callId, name: "shell", input: {} }] } as const;
    const step = store.transcript.append({ grant, turnId: "turn", entries: [{ key: "step", body }] });
    await expect(step).rejects.toMatchObject({ code: "STORE_CONTRACT", context: { systemCode: "54000" } });
    const end = { grant, turnId: "turn", outcome: "failed", reason: "STORE_CONTRACT", release: true } as const;
    expect(await store.turns.end(end)).toMatchObject({ kind: "ended" });
  },
);
