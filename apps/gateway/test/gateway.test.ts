import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { describe, expect, it } from "vitest";
import { readEvents } from "./inside/event-client.ts";
import { openGateway, post, rawRequest, until } from "./inside/open-gateway.ts";

describe("a turn over HTTP", () => {
  it("answers with turn.finished", async () => {
    const { url } = await openGateway([{ text: "Hello." }]);
    const response = await post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      type: "turn.finished",
      sessionId: "s",
      outcome: "answered",
      text: "Hello.",
    });
  });

  it("streams the turn's events in order, each with an id", async () => {
    const { url } = await openGateway([{ text: "Hello there." }]);
    const response = await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, { accept: "text/event-stream" });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const events = await readEvents(response);
    expect(events.every(({ id }) => id !== "")).toBe(true);
    const types = events.map(({ event }) => event.type);
    expect(types[0]).toBe("input.accepted");
    expect(types.at(-1)).toBe("turn.finished");
    expect(types).toContain("text.delta");
  });

  it("goes on when its client goes away", async () => {
    let answer = (): void => {};
    const waits = new Promise<void>((resolve) => (answer = resolve));
    const { url, store, agent } = await openGateway([
      async () => {
        await waits;
        return { text: "done" };
      },
    ]);
    const leaving = new AbortController();
    const response = await fetch(`${url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ input: "Hi", inputId: "i" }),
      signal: leaving.signal,
    });
    await response.body?.getReader().read();
    leaving.abort();
    answer();
    await agent.idle();
    expect(await store.inbox.read("s", "i")).toMatchObject({ state: "settled", end: "answered" });
  });

  it("busy with reject is 409 with Retry-After; a stop is answered at once", async () => {
    const { url, store } = await openGateway([{ silentAfter: "…" }]);
    const running = post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    await until(async () => (await store.turns.running("s")).length > 0);
    const busy = await post(`${url}/v1/sessions/s/turns`, { input: "me too", onBusy: "reject" });
    expect(busy.status).toBe(409);
    expect(busy.headers.get("retry-after")).toBe("5");
    expect(await busy.json()).toMatchObject({ code: "session_busy" });
    const stop = (): Promise<Response> => post(`${url}/v1/sessions/s/stop`, {});
    expect((await stop()).status).toBe(202);
    expect(await (await running).json()).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect((await stop()).status).toBe(404);
  });

  it("lists, shows and deletes sessions", async () => {
    const { url } = await openGateway([{ text: "one" }]);
    await post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    expect(await (await fetch(`${url}/v1/sessions`)).json()).toMatchObject({
      sessions: [{ sessionId: "s", entryCount: 2 }],
    });
    expect(await (await fetch(`${url}/v1/sessions/s/messages?limit=1`)).json()).toMatchObject({
      messages: [{ role: "user", text: "Hi" }],
      nextCursor: "1",
    });
    expect(await (await fetch(`${url}/v1/sessions/s/messages?cursor=1`)).json()).toMatchObject({
      messages: [{ role: "assistant" }],
    });
    // Behind the last one there is nothing, and it is a session all the same.
    const behind = await fetch(`${url}/v1/sessions/s/messages?cursor=2`);
    expect([behind.status, await behind.json()]).toEqual([200, { messages: [] }]);
    expect((await fetch(`${url}/v1/sessions/s`, { method: "DELETE" })).status).toBe(204);
    expect((await fetch(`${url}/v1/sessions/s`)).status).toBe(404);
    expect((await fetch(`${url}/v1/sessions/s/messages`)).status).toBe(404);
  });
});

describe("bad requests", () => {
  it.each([
    ["an id that is a path", "/v1/sessions/..%2Fetc/turns", { input: "x" }, 400, "session_id_invalid"],
    ["an empty message", "/v1/sessions/s/turns", { input: "" }, 400, "input_empty"],
    ["an unknown field", "/v1/sessions/s/turns", { input: "x", model: "y" }, 400, "request_invalid"],
    ["a wrong type", "/v1/sessions/s/turns", { input: 7 }, 400, "request_invalid"],
    ["an unknown policy", "/v1/sessions/s/turns", { input: "x", onBusy: "panic" }, 400, "request_invalid"],
    ["a message that is too long", "/v1/sessions/s/turns", { input: "x".repeat(1_100_000) }, 413, "input_too_large"],
    ["a body that is too large", "/v1/sessions/s/turns", { input: "x".repeat(3_000_000) }, 413, "body_too_large"],
    ["an unknown route", "/v2/nothing", {}, 404, "route_unknown"],
  ])("get a problem with a stable code: %s", async (_what, path, body, status, code) => {
    const { url } = await openGateway([]);
    const response = await post(`${url}${path}`, body);
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toContain("application/problem+json");
    expect(await response.json()).toMatchObject({ status, code, type: "about:blank" });
  });

  it("for a session whose id cannot be one are told so, also where nothing would be run or stored", async () => {
    const { url } = await openGateway([]);
    for (const path of ["", "/messages", "/why", "/events"]) {
      const response = await fetch(`${url}/v1/sessions/..%2Fetc${path}`);
      expect([response.status, await response.json()]).toMatchObject([400, { code: "session_id_invalid" }]);
    }
  });

  it("that are not JSON are told so, and nothing is stored", async () => {
    const { url, store } = await openGateway([]);
    const response = await fetch(`${url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{",
    });
    expect(response.status).toBe(400);
    expect(await store.sessions.list()).toEqual({ sessions: [] });
  });
});

describe("access", () => {
  it("without a token is served on loopback only", async () => {
    await expect(openGateway([], { hostname: "0.0.0.0" })).rejects.toMatchObject({ code: "GATEWAY_UNPROTECTED" });
  });

  it("with a token needs it on every route but the probe", async () => {
    const { url } = await openGateway([], { token: "correct-horse" });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/v1/sessions`)).status).toBe(401);
    expect((await fetch(`${url}/v1/sessions`, { headers: { authorization: "Bearer wrong" } })).status).toBe(401);
    expect((await fetch(`${url}/v1/sessions`, { headers: { authorization: "Bearer correct-horse" } })).status).toBe(
      200,
    );
  });

  it("from a page of a foreign name is refused, and so are two Host headers", async () => {
    const { url } = await openGateway([]);
    expect(await rawRequest(url, "GET /v1/sessions HTTP/1.1\r\nHost: evil.example")).toMatch(/^HTTP\/1\.1 403/);
    expect(await rawRequest(url, "GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nHost: evil.example")).toMatch(
      /^HTTP\/1\.1 403/,
    );
    expect(await rawRequest(url, "GET /v1/sessions HTTP/1.1\r\nHost: localhost:1")).toMatch(/^HTTP\/1\.1 200/);
  });
});

describe("who looks", () => {
  it("is told who holds a session and what happens next, and which turns run", async () => {
    const { url, store } = await openGateway([{ silentAfter: "…" }]);
    expect((await fetch(`${url}/v1/sessions/s/why`)).status).toBe(404);
    void post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    await until(async () => (await store.turns.running("s")).length > 0);
    expect(await (await fetch(`${url}/v1/sessions/s/why`)).json()).toMatchObject({
      session: "s",
      holder: { pid: process.pid, state: "alive" },
      lease: { fencingToken: 1, standing: "live" },
      turn: { stop: null },
      pending: [],
      next: expect.stringMatching(/^The turn goes on to its end/),
    });
    expect(await (await fetch(`${url}/v1/turns`)).json()).toMatchObject({
      turns: [{ session: "s", pid: process.pid, state: "alive", progress: { last: expect.any(String) } }],
    });
    await post(`${url}/v1/sessions/s/stop`, {});
    await until(async () => (await store.turns.running("s")).length === 0);
    expect(await (await fetch(`${url}/v1/sessions/s/why`)).json()).toMatchObject({
      holder: null,
      next: "Nothing runs and nothing waits; start one with: POST /v1/sessions/s/turns",
    });
  });

  it("sees what became of a session's inputs and turns, with times that every program reads", async () => {
    const { url } = await openGateway([{ text: "one" }]);
    await post(`${url}/v1/sessions/s/turns`, { input: "Hi", inputId: "i" });
    expect(await (await fetch(`${url}/v1/sessions/s`)).json()).toMatchObject({
      session: "s",
      inputs: [{ inputId: "i", end: "answered", at: expect.stringMatching(/Z$/) }],
      turns: [{ state: "ended", outcome: "answered" }],
    });
  });

  it.each(["0", "abc", "1.5", "-1", "9999999999999999"])(
    "with a cursor that no page ended at is told so: %s",
    async (cursor) => {
      const { url } = await openGateway([{ text: "one" }]);
      await post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
      for (const path of ["/v1/sessions", "/v1/sessions/s/messages"]) {
        const response = await fetch(`${url}${path}?cursor=${encodeURIComponent(cursor)}`);
        expect(response.status).toBe(400);
        expect(await response.json()).toMatchObject({ code: "cursor_invalid" });
      }
    },
  );
});

it("X-Session-Key names a conversation whose prompt cache the turns of several sessions share", async () => {
  const model = scriptedModel([{ text: "1" }, { text: "2" }, { text: "3" }]);
  const { url } = await openGateway([], {}, { model });
  const run = async (sessionId: string, headers = {}): Promise<number> =>
    (await post(`${url}/v1/sessions/${sessionId}/turns`, { input: "Hi" }, headers)).status;
  const keyed = { "x-session-key": "support/4711" };
  expect([await run("a", keyed), await run("b", keyed), await run("b")]).toEqual([200, 200, 200]);
  const [first, second, third] = model.requests.map(({ providerOptions }) => providerOptions?.["turnkeeper"]);
  expect(second).toEqual(first);
  expect(third).not.toEqual(first);
  expect(await run("c", { "x-session-key": "k".repeat(201) })).toBe(400);
});
