import { expect, it } from "vitest";
import { makeHome, runCli } from "./outside/built-cli.ts";
import { EventReader } from "./outside/event-reader.ts";
import { compatibleConfig, makeGate, openAiGatedText, serveModel } from "./outside/model-server.ts";
import { startGateway } from "./outside/started-gateway.ts";
import type { Gateway } from "./outside/started-gateway.ts";

const post = (gateway: Gateway, sessionId: string, body: unknown, accept = "text/event-stream"): Promise<Response> =>
  fetch(`${gateway.url}/v1/sessions/${sessionId}/turns`, {
    method: "POST",
    headers: { "content-type": "application/json", accept },
    body: JSON.stringify(body),
  });

const runningCount = 24;
/** Of those, where somebody waits at the other gateway; and where a message lies in the queue, with nobody who waits. */
const waitingCount = 12;
const queuedCount = 6;
const otherCount = 8;

it("two gateways on one store share the work: of one that is killed under load the other tells every end, and runs what waited", async () => {
  const gate = makeGate();
  const model = await serveModel(openAiGatedText(gate, "half an ", "answer"));
  const home = makeHome(compatibleConfig(model));
  const [dying, living] = [await startGateway({ home }), await startGateway({ home })];
  const sessions = Array.from({ length: runningCount }, (_none, index) => `a${index}`);
  const others = Array.from({ length: otherCount }, (_none, index) => `b${index}`);

  // Every turn has said half of its answer, and says no more before the gate is open.
  const begin = async (gateway: Gateway, sessionId: string): Promise<EventReader> => {
    const reader = new EventReader(await post(gateway, sessionId, { input: "Hi", inputId: "first" }));
    await reader.until(({ type }) => type === "text.delta");
    return reader;
  };
  const cutOff = await Promise.all(sessions.map((sessionId) => begin(dying, sessionId)));
  const going = await Promise.all(others.map((sessionId) => begin(living, sessionId)));
  for (const sessionId of sessions.slice(0, queuedCount)) {
    const body = { input: "And then?", inputId: "queued", onBusy: "queue" };
    expect(await (await post(dying, sessionId, body, "application/json")).json()).toMatchObject({ outcome: "queued" });
  }
  const waiting = await Promise.all(
    sessions.slice(0, waitingCount).map(async (sessionId) => {
      const reader = new EventReader(await post(living, sessionId, { input: "Me too", inputId: "second" }));
      await reader.until(({ type }) => type === "turn.waiting");
      return reader;
    }),
  );
  const { turns } = (await (await fetch(`${living.url}/v1/turns`)).json()) as { turns: unknown[] };
  expect(turns).toHaveLength(runningCount + otherCount);

  dying.process.child.kill("SIGKILL");
  await dying.process.ended;
  gate.open();

  // Who followed a turn of the dead one comes back to the other: its end, and nothing that was told before.
  const isEnd = ({ type }: { readonly type: string }): boolean => type === "turn.finished";
  const retold = await Promise.all(
    sessions.map(async (sessionId, index) => {
      const lost = cutOff[index];
      await lost?.toItsEnd();
      const again = new EventReader(await post(living, sessionId, { input: "Hi", inputId: "first" }));
      const resumed = new EventReader(
        await fetch(`${living.url}/v1/sessions/${sessionId}/events`, {
          headers: { "last-event-id": lost?.lastId ?? "" },
        }),
      );
      await Promise.all([again.toItsEnd(), resumed.until(isEnd)]);
      resumed.leave();
      return { before: lost?.events ?? [], again: again.events, after: resumed.events };
    }),
  );
  for (const { before, again, after } of retold) {
    const crashed = { type: "turn.finished", outcome: "interrupted", reason: "crashed", turnId: before.at(-1)?.turnId };
    expect(before.at(-1)).toMatchObject({ type: "text.delta", text: "half an " });
    // It may have read on into the turns of what waited.
    expect(after.filter(({ turnId }) => turnId === crashed.turnId)).toEqual([expect.objectContaining(crashed)]);
    expect(after[0]).toMatchObject(crashed);
    expect(again.filter(isEnd)).toEqual([expect.objectContaining(crashed)]);
  }

  for (const reader of [...going, ...waiting]) {
    await reader.toItsEnd();
    expect(reader.events.filter(isEnd)).toEqual([
      expect.objectContaining({ outcome: "answered", text: "half an answer" }),
    ]);
    expect(reader.text).toBe("half an answer");
  }

  // What lay in the queue names nobody: it was run ahead of whoever waited.
  for (const [index, sessionId] of [...sessions, ...others].entries()) {
    const shown = await fetch(`${living.url}/v1/sessions/${sessionId}`);
    const first = { inputId: "first", end: index < runningCount ? "interrupted" : "answered" };
    const queued = index < queuedCount ? [{ inputId: "queued", end: "answered" }] : [];
    const second = index < waitingCount ? [{ inputId: "second", end: "answered" }] : [];
    const inputs = [first, ...queued, ...second].map((input) => expect.objectContaining(input) as unknown);
    expect(await shown.json()).toMatchObject({ inputs, turns: inputs.map(() => ({ state: "ended" })) });
  }
  const verified = await runCli(["sessions", "verify", "--json"], { home });
  expect(verified).toMatchObject({ code: 0 });
  expect(JSON.parse(verified.stdout)).toEqual({ violations: [] });
  living.process.child.kill("SIGTERM");
  expect(await living.process.ended).toMatchObject({ code: 0 });
});
