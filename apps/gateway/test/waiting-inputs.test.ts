import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { openGateway, post, until } from "./inside/open-gateway.ts";

const nobody = { runnerId: "gone", instanceId: "gone", host: "elsewhere", bootId: "another boot", pid: 1 };

it("inputs that a dead process left are run by the gateway that starts next, each once", async () => {
  const store = createMemoryStore({ host: systemHost });
  for (const sessionId of ["a", "b"]) {
    await store.inbox.offer({ sessionId, inputId: "i", text: "Hi", onBusy: "wait", runner: nobody });
    await store.inbox.abandon(sessionId, nobody.runnerId);
  }
  await openGateway([{ text: "one" }, { text: "two" }], {}, { store });
  const isAnswered = async (sessionId: string): Promise<boolean> =>
    (await store.inbox.read(sessionId, "i"))?.state === "settled";
  await until(async () => (await isAnswered("a")) && (await isAnswered("b")));
  for (const sessionId of ["a", "b"]) {
    expect(await store.inbox.read(sessionId, "i")).toMatchObject({ end: "answered" });
    expect((await store.sessions.records(sessionId))?.turns).toHaveLength(1);
  }
});

it("two hundred sessions that wait are run a few at a time, and hold up no call that comes meanwhile", async () => {
  const store = createMemoryStore({ host: systemHost });
  const sessions = Array.from({ length: 200 }, (_none, index) => `s${index}`);
  for (const sessionId of sessions) {
    await store.inbox.offer({ sessionId, inputId: "i", text: "Hi", onBusy: "wait", runner: nobody });
    await store.inbox.abandon(sessionId, nobody.runnerId);
  }
  let [runningCount, mostCount] = [0, 0];
  let [begunCount, letGo] = [0, (): void => {}];
  const isCallAnswered = new Promise<void>((resolve) => (letGo = resolve));
  const step = async ({ prompt }: { readonly prompt: unknown }): Promise<ScriptedStep> => {
    if (JSON.stringify(prompt).includes("a call")) return { text: "one" };
    mostCount = Math.max(mostCount, ++runningCount);
    // From the fiftieth on they wait for the call to be answered.
    await (++begunCount < 50 ? new Promise((resolve) => setImmediate(resolve)) : isCallAnswered);
    runningCount--;
    return { text: "one" };
  };
  const steps = Array.from({ length: sessions.length + 1 }, () => step);
  const { url, agent } = await openGateway(steps, { limits: { waitingSessionCount: 5 } }, { store });
  let endedCount = 0;
  using _ends = agent.observe(({ type }) => void (endedCount += type === "turn.finished" ? 1 : 0));
  const answer = await post(`${url}/v1/sessions/mine/turns`, { input: "a call" });
  expect(await answer.json()).toMatchObject({ outcome: "answered" });
  expect(await store.inbox.waitingSessions(1)).toHaveLength(1);
  letGo();
  await until(() => Promise.resolve(endedCount === sessions.length + 1));
  await agent.idle();
  expect(mostCount).toBe(5);
  for (const sessionId of sessions)
    expect((await store.sessions.records(sessionId))?.turns).toMatchObject([{ outcome: "answered" }]);
});
