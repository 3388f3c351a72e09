import { createAgent } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { MeasuredStore, startGateway } from "../src/index.ts";
import { openGateway, post, until } from "./inside/open-gateway.ts";

const valueOf = (text: string, name: string): number =>
  Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`turnkeeper_${name} `))
      ?.split(" ")
      .at(-1),
  );

it("metrics count turns by outcome, waits, holds, writes, refusals and what is open", async () => {
  const store = new MeasuredStore(createMemoryStore({ host: systemHost }), systemHost);
  const agent = await createAgent({ store, model: scriptedModel([{ text: "Hello." }, { silentAfter: "…" }]) });
  await using gateway = await startGateway({ agent, store }, { port: 0, drainMs: 0 });
  const turns = `${gateway.url}/v1/sessions/s/turns`;
  await post(turns, { input: "Hi" });
  const running = post(turns, { input: "and?" });
  await until(async () => (await store.turns.running("s")).length > 0);
  expect((await post(turns, { input: "me too", onBusy: "reject" })).status).toBe(409);
  const grant = { sessionId: "s", holderId: "nobody", fencingToken: 1 };
  await store.transcript.append({ grant, turnId: "t", entries: [{ key: "k", body: { role: "notice", text: "x" } }] });
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(valueOf(text, 'turns_total{outcome="answered",reason=""}')).toBe(1);
  expect(valueOf(text, 'turn_hold_seconds_count{outcome="answered"}')).toBe(1);
  expect(valueOf(text, "turn_wait_seconds_count")).toBe(2);
  expect(valueOf(text, "turns_running")).toBe(1);
  expect(valueOf(text, "calls_open")).toBe(1);
  expect(valueOf(text, "fencing_refusals_total")).toBe(1);
  expect(valueOf(text, 'append_seconds_count{kind="end"}')).toBe(1);
  expect(valueOf(text, "event_loop_delay_seconds")).toBeGreaterThan(0);
  expect(text).toMatch(
    /turnkeeper_http_request_seconds_count\{method="POST",route="\/v1\/sessions\/:sessionId\/turns",status="409"\} 1/,
  );
  await agent.stop("s", { hard: true });
  await running;
});

it("readiness is false while the gateway drains, and while the store refuses", async () => {
  const faults: string[] = [];
  const log = { level: "error", write: (line: string) => faults.push(line) } as const;
  const { url, gateway, store } = await openGateway([{ silentAfter: "…" }], { drainMs: 60_000, log });
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  const { list } = store.sessions;
  store.sessions.list = () => Promise.reject(new Error("gone"));
  expect((await fetch(`${url}/readyz`)).status).toBe(500);
  store.sessions.list = list;
  const turn = post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
  await until(async () => (await store.turns.running("s")).length > 0);
  const closed = gateway.close();
  const ready = await fetch(`${url}/readyz`);
  expect([ready.status, ((await ready.json()) as { code: string }).code]).toEqual([503, "draining"]);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  // A probe that is told no is an answer, not a fault: only the store's was one.
  expect(faults).toHaveLength(1);
  await store.turns.requestStop("s", { hard: true, reason: "user-stop", by: "test" });
  expect(await (await turn).json()).toMatchObject({ outcome: "interrupted" });
  await closed;
});
