import { createAgent, defineTool } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { z } from "zod";
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

it("a turn that waits for approval runs no more, however it ends", async () => {
  const shell = defineTool({
    name: "shell",
    description: "Runs a command.",
    input: z.object({}),
    needsApproval: true,
    execute: () => Promise.resolve("done"),
  });
  const step: ScriptedStep = { calls: [{ name: "shell", input: {} }] };
  const { url, store, agent } = await openGateway([step], {}, { tools: [shell] });
  const running = async (): Promise<number> => valueOf(await (await fetch(`${url}/metrics`)).text(), "turns_running");
  const turn = post(`${url}/v1/sessions/s/turns`, { input: "Hi", approval: "ask" });
  await until(async () => (await store.turns.running("s"))[0]?.turn.state === "suspended");
  await until(async () => (await running()) === 0);
  await agent.stop("s", { hard: true });
  expect(await (await turn).json()).toMatchObject({ outcome: "interrupted" });
  expect(await running()).toBe(0);
});

it("readiness is false for a while after the store took no message, though it can be read", async () => {
  let nowMs = 0;
  const host = { ...systemHost, clock: { ...systemHost.clock, monotonicMs: () => nowMs, wallMs: () => 0 } };
  const store = createMemoryStore({ host: systemHost });
  const agent = await createAgent({ store, model: scriptedModel([{ text: "Hello." }]) });
  await using gateway = await startGateway({ agent, store, host }, { port: 0, drainMs: 0 });
  const ready = async (): Promise<unknown> => {
    const response = await fetch(`${gateway.url}/readyz`);
    return [response.status, ((await response.json()) as { code?: string }).code];
  };
  const say = (): Promise<Response> => post(`${gateway.url}/v1/sessions/s/turns`, { input: "Hi" });
  const offer = store.inbox.offer.bind(store.inbox);
  store.inbox.offer = () => Promise.reject(new CodedError("STORE_FULL", "The disk is full."));
  expect((await say()).status).toBe(503);
  expect(await ready()).toEqual([503, "store_full"]);
  nowMs += 10_000;
  expect(await ready()).toEqual([200, undefined]);
  expect((await say()).status).toBe(503);
  expect(await ready()).toEqual([503, "store_full"]);
  store.inbox.offer = offer;
  expect((await say()).status).toBe(200);
  expect(await ready()).toEqual([200, undefined]);
});

it("readiness is false as soon as the store says that it would take no write, and asks it for none", async () => {
  const { url, store } = await openGateway([]);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  store.check = () => Promise.reject(new CodedError("STORE_REPLACED", "operators-home/state.db is another file."));
  const ready = await fetch(`${url}/readyz`);
  const told = await ready.text();
  expect([ready.status, JSON.parse(told)]).toMatchObject([503, { code: "store_replaced" }]);
  expect(told).not.toContain("operators-home");
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
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
