import type { TurnEvent } from "@turnkeeper/agent-core";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { afterEach, describe, expect, it } from "vitest";
import { FollowedSession } from "../console/src/followed-session.ts";
import { GatewayClient } from "../console/src/gateway-client.ts";
import { Poll } from "../console/src/poll.ts";
import { SentMessage } from "../console/src/sent-message.ts";
import { SessionToken } from "../console/src/session-token.ts";
import { fedStream, problem, scriptedFetch } from "./inside/scripted-fetch.ts";
import type { Reply } from "./inside/scripted-fetch.ts";

const baseUrl = "http://gateway.test/below/";
const noToken = { read: () => undefined, ask: () => Promise.reject(new Error("nobody is there")) };

const closing: { close(): void }[] = [];
afterEach(() => {
  for (const one of closing.splice(0)) one.close();
});

function opened(replies: readonly Reply[]) {
  const host = virtualHost();
  const { fetch, seen } = scriptedFetch(...replies);
  const client = new GatewayClient({ fetch, tokens: noToken, baseUrl });
  return { host, seen, client, deps: { host, client } };
}

function follow(replies: readonly Reply[]) {
  const parts = opened(replies);
  const told: unknown[] = [];
  const followed = new FollowedSession(parts.deps, "a b", {
    opened: (isAnew) => told.push(isAnew ? "anew" : "again"),
    told: ({ event, id }) => told.push([(event as TurnEvent).type, id]),
    lost: (retryInMs) => told.push(retryInMs > 0 ? "lost" : "lost at once"),
    ended: ({ code }) => told.push(code),
  });
  closing.push(followed);
  return { ...parts, told, followed };
}

const turnEvent = (type: string): object => ({ type, sessionId: "a b", turnId: "t", at: "" });

describe("a followed session", () => {
  it("comes back behind the last event after its gateway was restarted, and tells nothing twice", async () => {
    const [first, second] = [fedStream(), fedStream()];
    const { host, seen, told } = follow([first.response, "unreachable", "unreachable", second.response]);
    await host.settle();
    first.raw("retry: 1000\n\n");
    first.say(turnEvent("turn.started"), "t:0:0");
    first.say(turnEvent("text.delta"), "t:4:0");
    await host.settle();
    first.cut();
    await host.advance(60_000);
    second.say(turnEvent("turn.finished"), "t:end");
    await host.settle();
    expect(told).toEqual([
      "anew",
      ["turn.started", "t:0:0"],
      ["text.delta", "t:4:0"],
      "lost",
      "lost",
      "lost",
      "again",
      ["turn.finished", "t:end"],
    ]);
    expect(seen.map(({ path }) => path)).toEqual(Array(4).fill("/below/v1/sessions/a%20b/events"));
    expect(seen.map(({ headers }) => headers.get("last-event-id"))).toEqual([null, "t:4:0", "t:4:0", "t:4:0"]);
  });

  it("waits as long as the gateway asks for after a stream that it ended", async () => {
    const [first, second] = [fedStream(), fedStream()];
    const { host, seen } = follow([first.response, second.response]);
    await host.settle();
    first.raw("retry: 9000\n\n");
    first.end();
    await host.advance(8900);
    expect(seen).toHaveLength(1);
    await host.advance(200);
    expect(seen).toHaveLength(2);
  });

  it("begins anew where its event is gone", async () => {
    const [first, second] = [fedStream(), fedStream()];
    const { host, seen, told } = follow([first.response, problem(410, "event_gone"), second.response]);
    await host.settle();
    first.say(turnEvent("turn.started"), "t:0:0");
    await host.settle();
    first.end();
    await host.advance(30_000);
    expect(told).toEqual(["anew", ["turn.started", "t:0:0"], "lost", "lost", "anew"]);
    expect(seen[2]?.headers.get("last-event-id")).toBeNull();
  });

  it("ends where the session does not exist, and leaves no timer", async () => {
    const { host, told } = follow([problem(404, "session_unknown")]);
    await host.advance(60_000);
    expect(told).toEqual(["session_unknown"]);
    expect(host.pendingTimerCount()).toBe(0);
  });

  it.each([429, 503])("tries again after %d", async (status) => {
    const stream = fedStream();
    const { host, told } = follow([problem(status, "later"), stream.response]);
    await host.advance(2000);
    expect(told).toEqual(["lost", "anew"]);
  });

  it("gives up a connection on which nothing comes any more", async () => {
    const [dead, second] = [fedStream(), fedStream()];
    const { host, seen } = follow([dead.response, second.response]);
    await host.advance(40_000);
    dead.raw(":\n\n");
    await host.advance(40_000);
    expect(seen).toHaveLength(1);
    await host.advance(6000);
    // The response is cut by its signal; here nobody listens to that but the reader of a real one.
    dead.cut();
    await host.advance(2000);
    expect(seen).toHaveLength(2);
  });

  it("tells nothing once it is closed, and leaves no timer", async () => {
    const stream = fedStream();
    const { host, told, followed } = follow([stream.response]);
    await host.settle();
    followed.close();
    followed.close();
    stream.say(turnEvent("turn.started"), "t:0:0");
    stream.end();
    await host.advance(60_000);
    expect(told).toEqual(["anew"]);
    expect(host.pendingTimerCount()).toBe(0);
  });
});

function send(replies: readonly Reply[]) {
  const parts = opened(replies);
  const states: string[] = [];
  const sent = new SentMessage(parts.deps, { sessionId: "s", inputId: "i", text: "Hi", onBusy: "steer" }, ({ kind }) =>
    states.push(kind),
  );
  closing.push(sent);
  return { ...parts, states, sent };
}

describe("a sent message", () => {
  it("goes out again under its id until somebody tells its end", async () => {
    const [first, second] = [fedStream(), fedStream()];
    const { host, seen, states } = send(["unreachable", first.response, problem(503, "draining"), second.response]);
    await host.advance(2000);
    first.say({ type: "input.accepted", inputId: "i" }, "input:i");
    first.say(turnEvent("turn.started"), "t:0:0");
    await host.settle();
    first.cut();
    await host.advance(20_000);
    second.say({ ...turnEvent("turn.finished"), outcome: "answered", text: "" }, "t:end");
    await host.settle();
    expect(states).toEqual(["retrying", "accepted", "running", "retrying", "retrying", "ended"]);
    expect(seen).toHaveLength(4);
    for (const { method, path, body } of seen) {
      expect([method, path]).toEqual(["POST", "/below/v1/sessions/s/turns"]);
      expect(body).toEqual({ input: "Hi", inputId: "i", onBusy: "steer", approval: "ask" });
    }
    second.end();
    await host.advance(60_000);
    expect(seen).toHaveLength(4);
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("that was refused stays so until somebody sends it again", async () => {
    const stream = fedStream();
    const { host, seen, states, sent } = send([problem(429, "session_queue_full"), stream.response]);
    await host.advance(60_000);
    expect(states).toEqual(["refused"]);
    expect(seen).toHaveLength(1);
    sent.again();
    await host.settle();
    stream.say({ type: "input.accepted", inputId: "i" });
    await host.settle();
    expect(states).toEqual(["refused", "sending", "accepted"]);
  });
});

describe("a poll", () => {
  it("looks one at a time, at most a sixth of the time, and not while it is paused", async () => {
    const host = virtualHost();
    let [looking, lookCount] = [0, 0];
    const poll = new Poll(host, {
      everyMs: () => 1000,
      look: async () => {
        lookCount++;
        expect(++looking).toBe(1);
        await new Promise<void>((resolve) => host.timers.after(400, resolve));
        looking--;
        return true;
      },
    });
    poll.now();
    await host.advance(400);
    expect(lookCount).toBe(2);
    await host.advance(400 + 1990);
    expect(lookCount).toBe(2);
    await host.advance(20);
    expect(lookCount).toBe(3);
    poll.pause();
    await host.advance(60_000);
    expect(lookCount).toBe(3);
    poll.resume();
    expect(lookCount).toBe(4);
    poll.close();
    await host.advance(60_000);
    expect(lookCount).toBe(4);
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("asks less and less often while nobody answers, and says when it asks again", async () => {
    const host = virtualHost();
    const waits: number[] = [];
    let answers = false;
    const poll = new Poll(host, {
      everyMs: () => 1000,
      look: () => Promise.resolve(answers),
      missed: (retryInMs) => waits.push(retryInMs),
    });
    await host.advance(40_000);
    expect(waits.length).toBeGreaterThan(5);
    expect(waits.length).toBeLessThan(10);
    answers = true;
    await host.advance(20_000);
    const { length } = waits;
    answers = false;
    await host.advance(1000);
    expect(waits.slice(length).every((ms) => ms < 1000)).toBe(true);
    poll.close();
  });
});

describe("the token", () => {
  it("is asked for once for all requests that want it, travels in a header alone, and is asked for again once refused", async () => {
    const stored = new Map<string, string>();
    const storage = {
      getItem: (key: string) => stored.get(key) ?? null,
      setItem: (key: string, value: string) => void stored.set(key, value),
      removeItem: (key: string) => void stored.delete(key),
    };
    const asked: boolean[] = [];
    const token = new SessionToken(storage, (wasRefused) => {
      asked.push(wasRefused);
      return Promise.resolve(wasRefused ? "right-token" : "wrong-token");
    });
    const answerOf = ({ headers }: { readonly headers: Headers }): Response =>
      headers.get("authorization") === "Bearer right-token"
        ? Response.json({ ok: true })
        : problem(401, "unauthorised");
    const { fetch, seen } = scriptedFetch(...Array<typeof answerOf>(12).fill(answerOf));
    const client = new GatewayClient({ fetch, tokens: token, baseUrl });
    expect(await Promise.all([client.json("v1/turns"), client.json("v1/sessions")])).toEqual([
      { kind: "answer", value: { ok: true } },
      { kind: "answer", value: { ok: true } },
    ]);
    expect(asked).toEqual([false, true]);
    expect(seen.some(({ path }) => path.includes("token"))).toBe(false);
    expect([...stored.values()]).toEqual(["right-token"]);
    token.forget();
    expect(stored.size).toBe(0);
  });

  it("of a server that answers no problem, the status is told", async () => {
    const { fetch } = scriptedFetch(new Response("<html>", { status: 502 }));
    const client = new GatewayClient({ fetch, tokens: noToken, baseUrl });
    expect(await client.json("v1/turns")).toEqual({
      kind: "refused",
      problem: { status: 502, code: "http_502", detail: "The server answered 502." },
    });
  });
});
