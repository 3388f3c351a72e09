import { expect, it } from "vitest";
import { isFinished, openStream, readEvents } from "./inside/event-client.ts";
import { openGateway, post, until } from "./inside/open-gateway.ts";

it("a gateway that closes lets a turn end, takes nothing new, and ends every stream", async () => {
  let answer = (): void => {};
  const waits = new Promise<void>((resolve) => (answer = resolve));
  const { url, gateway, store } = await openGateway(
    [
      async () => {
        await waits;
        return { text: "done" };
      },
    ],
    { drainMs: 60_000 },
  );
  const turn = post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
  await until(async () => (await store.turns.running("s")).length > 0);
  const following = readEvents(await openStream(`${url}/v1/sessions/s/events`));
  const kept = await fetch(`${url}/v1/sessions`);
  expect(kept.status).toBe(200);
  const closed = gateway.close();
  const refused = await post(`${url}/v1/sessions/t/turns`, { input: "too late" });
  expect([
    refused.status,
    refused.headers.get("connection"),
    ((await refused.json()) as { code: string }).code,
  ]).toEqual([503, "close", "draining"]);
  expect((await fetch(`${url}/v1/sessions`)).status).toBe(503);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  answer();
  expect(await (await turn).json()).toMatchObject({ outcome: "answered", text: "done" });
  expect((await following).at(-1)?.event).toMatchObject({ type: "turn.finished", outcome: "answered" });
  await closed;
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  expect(await store.sessions.read("t")).toBeUndefined();
});

it("what has not ended when its time is up is stopped as shutdown, waiters are answered, and leases are free", async () => {
  const { url, gateway, store } = await openGateway([{ silentAfter: "half an" }], { drainMs: 50 });
  const headers = { accept: "text/event-stream" };
  const stream = readEvents(await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, headers));
  await until(async () => (await store.turns.running("s")).length > 0);
  const waiter = post(`${url}/v1/sessions/s/turns`, { input: "and me", inputId: "w" });
  await until(async () => (await store.inbox.pending("s")).length > 0);
  await gateway.close();
  expect((await stream).at(-1)?.event).toMatchObject({ outcome: "interrupted", reason: "shutdown", text: "half an" });
  expect(await (await waiter).json()).toMatchObject({ outcome: "queued", reason: "shutdown" });
  expect(await store.leases.read("s")).toBeUndefined();
  expect(await store.inbox.read("s", "w")).toMatchObject({ state: "pending" });
});

it("connections that are kept alive do not keep a gateway that closes", async () => {
  const { url, gateway } = await openGateway([]);
  await (await fetch(`${url}/v1/sessions`)).json();
  const beganAtMs = performance.now();
  await gateway.close();
  await gateway.close();
  expect(performance.now() - beganAtMs).toBeLessThan(5000);
});

it("a client that goes away stops its turn where it asked for that", async () => {
  const { url, store } = await openGateway([{ silentAfter: "…" }]);
  const leaving = new AbortController();
  const response = await fetch(`${url}/v1/sessions/s/turns`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ input: "Hi", inputId: "i", stopWhenGone: true }),
    signal: leaving.signal,
  });
  await until(async () => (await store.turns.running("s")).length > 0);
  await response.body?.getReader().read();
  leaving.abort();
  await until(async () => (await store.inbox.read("s", "i"))?.state === "settled");
  const told = await readEvents(await openStream(`${url}/v1/sessions/s/events?after=start`), isFinished);
  expect(told.at(-1)?.event).toMatchObject({
    outcome: "interrupted",
    reason: "user-stop",
    by: "http client that went away",
  });
});
