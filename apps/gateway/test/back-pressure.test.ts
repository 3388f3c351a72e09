import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { openGateway, post, until } from "./inside/open-gateway.ts";
import { isFinished, openStream, readEvents, toldBy } from "./inside/event-client.ts";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

const codeOf = async (response: Response): Promise<unknown> => [
  response.status,
  response.headers.get("retry-after"),
  ((await response.json()) as { code: string }).code,
];

describe("more than there is room for is refused before it is stored", () => {
  it("calls, over all sessions and of one", async () => {
    const limits = { callCount: 2, callCountPerSession: 1 };
    const { url, store, agent } = await openGateway([{ silentAfter: "…" }, { silentAfter: "…" }], { limits });
    const running = ["a", "b"].map((id) => post(`${url}/v1/sessions/${id}/turns`, { input: "Hi" }));
    await until(async () => (await store.turns.running()).length === 2);
    expect(await codeOf(await post(`${url}/v1/sessions/c/turns`, { input: "Hi" }))).toEqual([
      429,
      "5",
      "too_many_calls",
    ]);
    expect(await store.sessions.read("c")).toBeUndefined();
    await agent.stop("b", { hard: true });
    await running[1];
    expect(await codeOf(await post(`${url}/v1/sessions/a/turns`, { input: "Hi", inputId: "more" }))).toEqual([
      429,
      "5",
      "session_queue_full",
    ]);
    expect(await store.inbox.read("a", "more")).toBeUndefined();
    await agent.stop("a", { hard: true });
    await Promise.all(running);
  });

  it("inputs that are left in the queue of a session", async () => {
    const { url, store, agent } = await openGateway([{ silentAfter: "…" }, { text: "queued" }, { text: "queued" }], {
      limits: { queueLength: 2 },
    });
    const running = post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    await until(async () => (await store.turns.running("s")).length > 0);
    const queue = (): Promise<Response> => post(`${url}/v1/sessions/s/turns`, { input: "later", onBusy: "queue" });
    for (let count = 0; count < 2; count++) expect((await queue()).status).toBe(200);
    expect(await codeOf(await queue())).toEqual([429, "5", "session_queue_full"]);
    expect(await store.inbox.pending("s")).toHaveLength(2);
    await agent.stop("s", { hard: true });
    await running;
    await agent.idle();
  });

  it("inputs of one session that come at once, as JSON, as events and in OpenAI's form: the queue has its length", async () => {
    const limits = { queueLength: 5 };
    const { url, store, agent } = await openGateway([{ silentAfter: "…" }], { limits });
    const running = post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    await until(async () => (await store.turns.running("s")).length > 0);
    const queue = (accept: string): Promise<Response> =>
      post(`${url}/v1/sessions/s/turns`, { input: "later", onBusy: "queue" }, { accept });
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, () => queue("application/json")),
      ...Array.from({ length: 20 }, () => queue("text/event-stream")),
    ]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused).toHaveLength(35);
    for (const answer of refused) expect(await codeOf(answer)).toEqual([429, "5", "session_queue_full"]);
    const chat = { model: agent.modelId, messages: [{ role: "user", content: "later" }], stream: true };
    const said = await post(`${url}/v1/chat/completions`, chat, { "x-session-id": "s" });
    expect([said.status, await said.json()]).toMatchObject([429, { error: { code: "session_queue_full" } }]);
    expect(await store.inbox.pending("s")).toHaveLength(5);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain("turnkeeper_calls_refused_total 36");
    await agent.stop("s", { hard: true });
    await running;
  });

  it("and what children tell of their ends takes nobody's room", async () => {
    const { url, store, agent } = await openGateway([{ silentAfter: "…" }, { text: "queued" }], {
      limits: { queueLength: 1 },
    });
    const running = post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    await until(async () => (await store.turns.running("s")).length > 0);
    const turnId = (await store.turns.running("s"))[0]?.turn.turnId ?? "";
    const nobody = { runnerId: "nobody", instanceId: "i", host: "elsewhere", bootId: "b", pid: 1 };
    const child = { sessionId: "child", inputId: "task", text: "Look.", onBusy: "wait" as const };
    await store.inbox.offer({ ...child, runner: nobody, parent: { sessionId: "s", turnId, callId: "call" } });
    await store.inbox.withdraw("child", "task", "cancelled");
    expect(await store.inbox.pending("s")).toMatchObject([{ child: { sessionId: "child" } }]);
    const queue = (): Promise<Response> => post(`${url}/v1/sessions/s/turns`, { input: "later", onBusy: "queue" });
    expect((await queue()).status).toBe(200);
    expect(await codeOf(await queue())).toEqual([429, "5", "session_queue_full"]);
    await agent.stop("s", { hard: true });
    await running;
    await agent.idle();
  });

  it("event streams", async () => {
    const { url } = await openGateway([{ text: "Hello." }], { limits: { streamCount: 1 } });
    await post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    const open = await openStream(`${url}/v1/sessions/s/events`);
    expect(await codeOf(await openStream(`${url}/v1/sessions/s/events`))).toEqual([429, "5", "too_many_streams"]);
    await open.body?.cancel();
    await until(async () => {
      const again = await openStream(`${url}/v1/sessions/s/events`);
      await again.body?.cancel();
      return again.status === 200;
    });
  });
});

it("of event streams that are asked for at once no more are opened than there is room for", async () => {
  const { url, store } = await openGateway([{ text: "Hello." }], { limits: { streamCount: 3 } });
  await post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
  // All have asked before the store tells the first of them that there is such a session.
  let tell = (): void => {};
  const isTold = new Promise<void>((resolve) => (tell = resolve));
  const read = store.sessions.read.bind(store.sessions);
  store.sessions.read = async (sessionId) => {
    await isTold;
    return read(sessionId);
  };
  let refusedCount = 0;
  const asked = Array.from({ length: 20 }, async () => {
    const answer = await openStream(`${url}/v1/sessions/s/events`);
    if (answer.status === 429) refusedCount++;
    return answer;
  });
  await until(() => Promise.resolve(refusedCount === 17));
  tell();
  const answers = await Promise.all(asked);
  const open = answers.filter(({ status }) => status === 200);
  expect(open).toHaveLength(3);
  for (const { body } of answers) await body?.cancel();
  const isGone = async (): Promise<boolean> => {
    const answer = await openStream(`${url}/v1/sessions/none/events`);
    return answer.status === 404;
  };
  await until(isGone);
  // What was refused, and what was not found, keeps no room.
  for (let count = 0; count < 5; count++) expect(await isGone()).toBe(true);
});

it.each([
  ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
  ["/v1/responses", { input: "Hi" }],
])(
  "of answers that are asked for as streams at once no more are begun than there is room for: %s",
  async (path, body) => {
    // None says a word, and so none has its stream yet, before all have asked.
    let answer = (): void => {};
    const waits = new Promise<void>((resolve) => (answer = resolve));
    const steps = Array.from({ length: 2 }, () => async () => {
      await waits;
      return { text: "Hello." };
    });
    const { url, agent } = await openGateway(steps, { limits: { streamCount: 2 } });
    let refusedCount = 0;
    const asked = Array.from({ length: 12 }, async () => {
      const told = await post(`${url}${path}`, { model: agent.modelId, stream: true, ...body });
      if (told.status === 429) refusedCount++;
      return told.text();
    });
    await until(() => Promise.resolve(refusedCount === 10));
    answer();
    const texts = await Promise.all(asked);
    expect(texts.filter((text) => text.includes("Hello."))).toHaveLength(2);
    expect(texts.filter((text) => text.includes("too_many_streams"))).toHaveLength(10);
  },
);

describe("a reader that takes nothing", () => {
  it("is cut off when too much waits for it, harms no turn, and comes back where it was", async () => {
    const piece = "x".repeat(256_000);
    const parts = Array.from({ length: 50 }, () => ({ type: "text-delta" as const, id: "t", delta: piece }));
    const { url, store } = await openGateway(
      [
        {
          parts: [
            { type: "text-start", id: "t" },
            ...parts,
            { type: "text-end", id: "t" },
            { type: "finish", usage, finishReason: { unified: "stop", raw: undefined } },
          ],
          between: () => new Promise((resolve) => setImmediate(resolve)),
        },
      ],
      { limits: { streamBufferBytes: 500_000 } },
    );
    const body = JSON.stringify({ input: "Hi", inputId: "i" });
    const { port, hostname } = new URL(url);
    const socket: Socket = connect(Number(port), hostname);
    const head = `POST /v1/sessions/s/turns HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    socket.write(head + body);
    let received = "";
    while (!/^id: .+$/m.test(received)) received += String((await once(socket, "data"))[0]);
    socket.pause();
    socket.on("error", () => {});
    await until(async () => (await store.inbox.read("s", "i"))?.state === "settled");
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain("turnkeeper_event_streams_dropped_total 1");
    expect(await store.inbox.read("s", "i")).toMatchObject({ end: "answered" });
    socket.destroy();
    const id = /^id: (.+)$/m.exec(received)?.[1];
    const rest = await readEvents(await openStream(`${url}/v1/sessions/s/events`, id), isFinished);
    const [, finished] = toldBy(rest) as [unknown, [string, string, string, string]];
    expect(finished[1]).toBe("answered");
    expect(finished[3]).toHaveLength(50 * piece.length);
  });
});
