import { createAgent } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { systemHost } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { startGateway } from "../src/index.ts";
import { KeptSessions } from "../src/kept-sessions.ts";
import { sessionIdOfKey } from "../src/openai/request-headers.ts";
import { post, until } from "./inside/open-gateway.ts";

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const runner = { runnerId: "r", instanceId: "i", host: "h", bootId: "b", pid: 1 };
/** As a request with an idempotency key names its session, in an order that a test decides. */
const name = (number: number): string => `chat-${number.toString(16).padStart(32, "0")}`;

async function fill(store: MemoryStore, ...sessionIds: string[]): Promise<void> {
  for (const sessionId of sessionIds) {
    await store.inbox.offer({ sessionId, inputId: "one", text: "Hi", onBusy: "wait", runner });
    await store.inbox.withdraw(sessionId, "one", "expired");
  }
}

const idsOf = async (store: MemoryStore): Promise<readonly string[]> =>
  (await store.sessions.list({ limit: 1000 })).sessions.map(({ sessionId }) => sessionId).toSorted();

describe("the sessions that requests without a name left", () => {
  it("are forgotten once nobody has used them for so long, and no other is", async () => {
    const host = virtualHost();
    const [store, scheduler] = [createMemoryStore({ host }), createPeriodicScheduler({ host })];
    const given = [`chat-${systemHost.random.id()}`, sessionIdOfKey("a key")];
    await fill(store, name(1), "chat-mine", "mine", name(2), name(3), ...given);
    const errors: unknown[] = [];
    const kept = new KeptSessions({ store, scheduler, onError: (error) => errors.push(error) }, 10 * dayMs);
    await host.advance(9 * dayMs);
    expect(await idsOf(store)).toHaveLength(7);
    // One is used, and an input waits in another.
    await fill(store, name(2));
    await store.inbox.offer({ sessionId: name(3), inputId: "two", text: "Hi", onBusy: "wait", runner });
    await host.advance(2 * dayMs);
    expect(await idsOf(store)).toEqual([name(2), name(3), "chat-mine", "mine"].toSorted());
    await host.advance(20 * dayMs);
    expect(await idsOf(store)).toEqual([name(3), "chat-mine", "mine"].toSorted());
    expect(errors).toEqual([]);
    await Promise.all([kept.close(), host.advance(2000)]);
    await scheduler.close();
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("are forgotten a few at a time, and those that are left alone hold up no other", async () => {
    const host = virtualHost();
    const [store, scheduler] = [createMemoryStore({ host }), createPeriodicScheduler({ host })];
    const waiting = Array.from({ length: 60 }, (_none, index) => name(index));
    for (const sessionId of waiting)
      await store.inbox.offer({ sessionId, inputId: "one", text: "Hi", onBusy: "wait", runner });
    await fill(store, ...Array.from({ length: 70 }, (_none, index) => name(1000 + index)));
    await host.advance(2 * dayMs);
    const kept = new KeptSessions({ store, scheduler, onError: () => {} }, dayMs);
    await host.advance(61_000);
    expect((await idsOf(store)).length).toBeGreaterThanOrEqual(80);
    await host.advance(5 * 61_000);
    expect(await idsOf(store)).toEqual(waiting.toSorted());
    await Promise.all([kept.close(), host.advance(2000)]);
    await scheduler.close();
  });
});

it("a gateway forgets what requests without a name began, over its own clock, and says so to whoever asks", async () => {
  const host = virtualHost();
  const [store, scheduler] = [createMemoryStore({ host }), createPeriodicScheduler({ host })];
  const model = scriptedModel(Array.from({ length: 4 }, () => ({ text: "Hello." })));
  const agent = await createAgent({ store, model, host, scheduler });
  const gateway = await startGateway({ agent, store, host, scheduler }, { port: 0, keepMs: 2 * hourMs });
  /** The virtual clock goes on while the socket is waited for. */
  const passing = async <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    let isHere = false;
    void answer.finally(() => (isHere = true)).catch(() => {});
    await until(async () => {
      if (!isHere) await host.advance(1);
      return isHere;
    });
    return answer;
  };
  const say = async (body: object, path: string, headers: Record<string, string> = {}): Promise<string> => {
    const answer = await passing(post(`${gateway.url}${path}`, body, headers));
    expect(answer.status).toBe(200);
    return answer.headers.get("x-session-id") ?? "";
  };
  const chat = { model: agent.modelId, messages: [{ role: "user", content: "Hi" }], store: true };
  const kept = await say(chat, "/v1/chat/completions");
  const used = await say(chat, "/v1/chat/completions");
  await say(chat, "/v1/chat/completions", { "x-session-id": "mine" });
  expect([kept, used]).toEqual([expect.stringMatching(/^chat-/), expect.stringMatching(/^chat-/)]);
  const statusOf = async (sessionId: string): Promise<number> =>
    (await passing(fetch(`${gateway.url}/v1/sessions/${sessionId}`))).status;

  await host.advance(1.5 * hourMs);
  expect([await statusOf(kept), await statusOf(used), await statusOf("mine")]).toEqual([200, 200, 200]);
  await say({ input: "Still here" }, `/v1/sessions/${used}/turns`);
  await host.advance(0.6 * hourMs);
  expect([await statusOf(kept), await statusOf(used), await statusOf("mine")]).toEqual([404, 200, 200]);
  await host.advance(2 * hourMs);
  expect([await statusOf(used), await statusOf("mine")]).toEqual([404, 200]);

  await passing(gateway.close());
  await passing(scheduler.close());
  expect(host.pendingTimerCount()).toBe(0);
});
