import { once } from "node:events";
import { connect } from "node:net";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";
import { expect, test, vi } from "vitest";
import { openGateway, post } from "./inside/open-gateway.ts";

const model = "scripted/model";
const mine = { "x-session-id": "mine" };
const refused = (): Promise<never> => Promise.reject(new CodedError("STORE_IO", "The disk does not answer."));
const freshStore = (): MemoryStore => createMemoryStore({ host: systemHost });
const weather = { text: "I look.", calls: [{ id: "Bonn", name: "weather", input: {} }] };

test.each([
  {
    path: "/v1/chat/completions",
    body: {
      messages: [{ role: "user", content: "Weather?" }],
      tools: [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }],
    },
    last: { error: { code: "store_io", type: "server_error" } },
  },
  {
    path: "/v1/responses",
    body: { input: "Weather?", tools: [{ type: "function", name: "weather", parameters: { type: "object" } }] },
    last: { type: "response.failed", response: { status: "failed", error: { code: "store_io" } } },
  },
])("a stream of $path that the store breaks off says so, and ends", async ({ path, body, last }) => {
  const store = freshStore();
  const gateway = await openGateway([weather], {}, { store });
  // Whoever hands the calls over asks in the middle of the stream, of a turn that waits for them.
  const running = store.turns.running.bind(store.turns);
  vi.spyOn(store.turns, "running").mockImplementation(async (sessionId) => {
    const views = await running(sessionId);
    return views.some(({ turn }) => turn.state === "suspended") ? refused() : views;
  });
  const answer = await post(`${gateway.url}${path}`, { model, stream: true, ...body }, mine);
  const events = (await answer.text()).split("\n").flatMap((line) => line.match(/^data: (.*)$/)?.[1] ?? []);
  expect(events.join("\n")).toContain("I look.");
  expect(JSON.parse(events.at(-1) ?? "")).toMatchObject(last);
});

test("an answer is told whose session cannot be forgotten", async () => {
  const store = freshStore();
  const gateway = await openGateway([{ text: "Good morning." }], {}, { store });
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  vi.spyOn(store.sessions, "delete").mockImplementation(refused);
  const body = { model, messages: [{ role: "user", content: "Good morning" }] };
  const answer = await post(`${gateway.url}/v1/chat/completions`, body);
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: "Good morning." } }] });
  expect(warned.mock.calls.map(([warning]) => String(warning))).toEqual([
    expect.stringMatching(/^Could not forget session chat-\S+, whose answer was told: The disk/),
  ]);
});

test("a client that leaves while the store is slow leaves no turn that runs for nobody", async () => {
  const store = freshStore();
  const scripted = scriptedModel([{ text: "Good morning." }]);
  const gateway = await openGateway([], {}, { store, model: scripted });
  const { importSession } = store.sessions;
  const [begun, isBegun] = parting();
  const [mayGoOn, goOn] = parting();
  vi.spyOn(store.sessions, "importSession").mockImplementation(async (records) => {
    isBegun();
    await mayGoOn;
    return importSession.call(store.sessions, records);
  });
  const said = (role: string) => ({ role, content: "Good morning" });
  const body = JSON.stringify({ model, messages: [said("user"), said("assistant"), said("user")] });
  const { port, hostname } = new URL(gateway.url);
  const client = connect(Number(port), hostname);
  client.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\n`);
  client.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  await begun;
  client.destroy();
  await once(client, "close");
  // Whoever has answered these two has heard of what happened before them.
  for (let round = 0; round < 2; round++) await (await fetch(`${gateway.url}/healthz`)).text();
  const deleted = new Promise<void>((resolve) => {
    const original = store.sessions.delete.bind(store.sessions);
    vi.spyOn(store.sessions, "delete").mockImplementation(async (sessionId) => {
      const result = await original(sessionId);
      resolve();
      return result;
    });
  });
  goOn();
  await deleted;
  expect(scripted.requests).toEqual([]);
});

/** A promise and what resolves it. */
function parting(): readonly [Promise<void>, () => void] {
  let part = (): void => {};
  return [new Promise<void>((resolve) => (part = resolve)), () => part()];
}

test("what is said beside results that the store refused is said once, however often it is sent", async () => {
  const store = freshStore();
  const scripted = scriptedModel([weather, { text: "Rain." }]);
  const gateway = await openGateway([], {}, { store, model: scripted });
  const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];
  const send = (...messages: readonly object[]): Promise<Response> =>
    post(`${gateway.url}/v1/chat/completions`, { model, tools, messages }, mine);
  expect((await send({ role: "user", content: "Weather?" })).status).toBe(200);
  const answer = vi.spyOn(store.turns, "answer").mockImplementation(refused);
  const beside = [
    { role: "tool", tool_call_id: "Bonn", content: "rain" },
    { role: "user", content: "In French." },
  ];
  expect((await send(...beside)).status).toBe(503);
  answer.mockRestore();
  expect((await send(...beside)).status).toBe(200);
  const told = JSON.stringify(scripted.requests.at(-1)?.prompt);
  expect(told.split("In French.")).toHaveLength(2);
});
