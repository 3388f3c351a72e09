import { defineTool } from "@turnkeeper/agent-core";
import type { AnyTool, TurnEvent } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { isFinished, openStream, readEvents, toldBy } from "./inside/event-client.ts";
import type { ReceivedEvent } from "./inside/event-client.ts";
import { openGateway, post, until } from "./inside/open-gateway.ts";
import type { OpenedGateway } from "./inside/open-gateway.ts";

const noting = (name: string, needsApproval: boolean): AnyTool =>
  defineTool({
    name,
    description: "Says that it ran.",
    input: z.object({ say: z.string() }),
    needsApproval,
    execute: ({ say }) => Promise.resolve(`${say} is done`),
  });
const tools = [noting("look", false), noting("change", true)];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** Pieces of an answer that leave one by one, as the test lets them. */
function gatedAnswer(...pieces: readonly string[]): { step: ScriptedStep; letGo(count: number): Promise<void> } {
  const gates: (() => void)[] = [];
  const step: ScriptedStep = {
    parts: [
      { type: "text-start", id: "t" },
      ...pieces.map((delta) => ({ type: "text-delta" as const, id: "t", delta })),
      { type: "text-end", id: "t" },
      { type: "finish", usage, finishReason: { unified: "stop", raw: undefined } },
    ],
    between: () => new Promise((resolve) => gates.push(resolve)),
  };
  const letGo = async (count: number): Promise<void> => {
    for (let opened = 0; opened < count; opened++) {
      await until(() => Promise.resolve(gates.length > 0));
      gates.shift()?.();
    }
  };
  return { step, letGo };
}

/** Asks about one call while another one runs, goes on, and asks again. */
const asksTwice: readonly ScriptedStep[] = [
  {
    text: "First I look. ",
    calls: [
      { id: "a", name: "look", input: { say: "look" } },
      { id: "b", name: "change", input: { say: "one" } },
    ],
  },
  { text: "Once more. ", calls: [{ id: "c", name: "change", input: { say: "two" } }] },
  { text: "All is done." },
];

const turnsUrl = ({ url }: OpenedGateway): string => `${url}/v1/sessions/s/turns`;
const eventsUrl = ({ url }: OpenedGateway): string => `${url}/v1/sessions/s/events`;
const isAsked =
  (callId: string) =>
  (event: TurnEvent): boolean =>
    event.type === "approval.requested" && event.callId === callId;

const postTurn = (gateway: OpenedGateway): Promise<Response> =>
  post(turnsUrl(gateway), { input: "Hi", inputId: "i" }, { accept: "text/event-stream" });

async function isSuspendedOver({ store }: OpenedGateway, callId: string): Promise<boolean> {
  const [open] = await store.turns.running("s");
  return open?.turn.state === "suspended" && open.turn.approvals.some((asked) => asked.callId === callId);
}

async function allow(gateway: OpenedGateway, callId: string): Promise<void> {
  await until(() => isSuspendedOver(gateway, callId));
  const answer = await post(`${gateway.url}/v1/sessions/s/approvals/${callId}`, { decision: "allow" });
  expect(answer.status).toBe(200);
}

/** What a client knows after these events, its questions too. */
function knownBy(events: readonly ReceivedEvent[]): readonly unknown[] {
  const asked = events.flatMap(({ event }) => (event.type === "approval.requested" ? [event.callId] : []));
  return [asked, ...toldBy(events)];
}

const told = [
  ["turn.started", expect.any(String)],
  ["tool.started", "a", 14, 0],
  ["tool.finished", "a", "look is done", 14, 0],
  ["tool.started", "b", 14, 0],
  ["tool.finished", "b", "one is done", 14, 0],
  ["tool.started", "c", 25, 0],
  ["tool.finished", "c", "two is done", 25, 0],
  ["turn.finished", "answered", "All is done.", "First I look. Once more. All is done.", ""],
];

describe("a stream that is open while its turn waits for approval and goes on", () => {
  it("of the call, and of the session, tells everything once, the questions too", async () => {
    const gateway = await openGateway(asksTwice, {}, { tools });
    const posted = await postTurn(gateway);
    const streams = [posted, await openStream(`${eventsUrl(gateway)}?after=start`)];
    const reading = Promise.all(streams.map((stream) => readEvents(stream, isFinished)));
    await allow(gateway, "b");
    await allow(gateway, "c");
    for (const events of await reading) expect(knownBy(events)).toEqual([["b", "c"], ...told]);
  });

  it("and is cut off anywhere, is told the rest on the next one: no gap, nothing twice", async () => {
    const gateway = await openGateway(asksTwice, {}, { tools });
    const reading = readEvents(await postTurn(gateway), isFinished);
    await allow(gateway, "b");
    await allow(gateway, "c");
    const whole = await reading;
    for (const [index, { id, event }] of whole.entries()) {
      if (isFinished(event)) continue;
      const rest = await readEvents(await openStream(eventsUrl(gateway), id), isFinished);
      expect(toldBy([...whole.slice(0, index + 1), ...rest])).toEqual(told);
    }
  });

  it("and comes back while it waits, is asked only what it was not asked before", async () => {
    const gateway = await openGateway(asksTwice, {}, { tools });
    const before = await readEvents(await postTurn(gateway), isAsked("b"));
    const again = await openStream(eventsUrl(gateway), before.at(-1)?.id);
    const anew = await openStream(eventsUrl(gateway), before.at(-2)?.id);
    const reading = readEvents(again, isFinished);
    expect((await readEvents(anew, isAsked("b"))).map(({ event }) => event.type)).toEqual(["approval.requested"]);
    await allow(gateway, "b");
    await allow(gateway, "c");
    expect(knownBy([...before, ...(await reading)])).toEqual([["b", "c"], ...told]);
  });

  it("has live what is said after the turn went on, before it is stored", async () => {
    const answer = gatedAnswer("one ", "two ", "three");
    const gateway = await openGateway([...asksTwice.slice(0, 1), answer.step], {}, { tools });
    const posting = readEvents(await postTurn(gateway), isFinished);
    await allow(gateway, "b");
    void answer.letGo(1);
    const isText = ({ type }: TurnEvent): boolean => type === "text.delta";
    const first = await readEvents(await openStream(eventsUrl(gateway)), (event, all) => {
      const texts = all.flatMap((one) => (one.event.type === "text.delta" ? [one.event.text] : []));
      return isText(event) && texts.join("") === "First I look. one ";
    });
    void answer.letGo(1);
    const second = await readEvents(await openStream(eventsUrl(gateway), first.at(-1)?.id), isText);
    expect(second.map(({ event }) => event)).toMatchObject([{ type: "text.delta", text: "two " }]);
    void answer.letGo(4);
    const third = await readEvents(await openStream(eventsUrl(gateway), second.at(-1)?.id), isFinished);
    const text = "First I look. one two three";
    const end = ["turn.finished", "answered", "one two three", text, ""];
    expect(toldBy([...first, ...second, ...third]).at(-1)).toEqual(end);
    expect(toldBy(await posting).at(-1)).toEqual(end);
  });
});

describe("a turn that is suspended over a subagent", () => {
  const delegate = defineTool({
    name: "delegate",
    description: "Delegates.",
    input: z.object({ task: z.string() }),
    mayRunAgain: true,
    execute: async ({ task }, context) => (await context.delegate?.(task))?.text ?? "",
  });
  const asks = (id: string, say: string): ScriptedStep => ({ calls: [{ id, name: "change", input: { say } }] });
  const steps: readonly ScriptedStep[] = [
    { calls: [{ id: "d", name: "delegate", input: { task: "change it" } }] },
    asks("b", "one"),
    asks("c", "two"),
    { text: "Both are changed." },
    { text: "All is done." },
  ];

  it("rule 7.19: has each question of it on its stream once, and goes on there with its end", async () => {
    const gateway = await openGateway(steps, {}, { tools: [...tools, delegate] });
    const reading = readEvents(await postTurn(gateway), isFinished);
    const childId = async (): Promise<string> => {
      const { sessions } = await gateway.store.sessions.list();
      return sessions.find(({ parent }) => parent)?.sessionId ?? "";
    };
    const isAskedOver = async (callId: string): Promise<boolean> => {
      const [parent] = await gateway.store.turns.running("s");
      const [child] = await gateway.store.turns.running(await childId());
      const isAsked = child?.turn.approvals?.some((asked) => asked.callId === callId && !asked.answer);
      return parent?.turn.state === "suspended" && child?.turn.state === "suspended" && isAsked === true;
    };
    for (const callId of ["b", "c"]) {
      await until(() => isAskedOver(callId));
      const wrong = await post(`${gateway.url}/v1/sessions/s/approvals/d`, { decision: "allow" });
      expect(wrong.status).toBe(404);
      const why = (await (await fetch(`${gateway.url}/v1/sessions/s/why`)).json()) as { turn: object; next: string };
      const child = await childId();
      expect(why.turn).toMatchObject({ state: "suspended", asks: [], subagents: [{ callId: "d", session: child }] });
      expect(why.next).toContain(`until the subagent in session ${child}`);
      const path = `/v1/sessions/${child}/approvals/${callId}`;
      expect((await post(`${gateway.url}${path}`, { decision: "allow" })).status).toBe(200);
    }
    const events = await reading;
    expect(knownBy(events)[0]).toEqual(["b", "c"]);
    const told = events.map(({ event }) => event.type).filter((type) => type !== "turn.waiting");
    for (const type of ["turn.started", "tool.started", "child.started", "tool.finished", "turn.finished"])
      expect(told.filter((one) => one === type)).toEqual([type]);
    expect(events.some(({ event }) => event.type === "turn.waiting" && event.awaits?.[0] === "d")).toBe(true);
    expect(events.find(({ event }) => event.type === "tool.finished")?.event).toMatchObject({
      callId: "d",
      ok: true,
      output: "Both are changed.",
    });
    expect(events.at(-1)?.event).toMatchObject({ outcome: "answered", text: "All is done." });
  });
});

describe("a turn that is allowed to go on at another gateway", () => {
  it("goes on there once who asked is gone, and a stream tells the rest of what the first one told", async () => {
    const here = await openGateway(asksTwice.slice(0, 1), {}, { tools });
    const there = await openGateway(asksTwice.slice(1), {}, { tools, store: here.store });
    const posting = readEvents(await postTurn(here), isFinished);
    const following = openStream(`${eventsUrl(there)}?after=start`).then((stream) => readEvents(stream, isFinished));
    await until(() => isSuspendedOver(here, "b"));
    await here.gateway.close();
    const before = await posting;
    // The call ends with its process; its turn does not, and its client is told where it was.
    expect(before.at(-1)?.event).toMatchObject({ type: "turn.finished", outcome: "queued" });
    const rest = openStream(eventsUrl(there), before.at(-1)?.id).then((stream) => readEvents(stream, isFinished));
    await allow(there, "b");
    await allow(there, "c");
    expect(knownBy(await following)).toEqual([["b", "c"], ...told]);
    expect(knownBy([...before.slice(0, -1), ...(await rest)])).toEqual([["b", "c"], ...told]);
  });

  it("with the call's own gateway alive: its stream tells the rest, whichever of the two went on", async () => {
    const model = scriptedModel(asksTwice);
    const here = await openGateway([], {}, { tools, model });
    const there = await openGateway([], {}, { tools, model, store: here.store });
    const reading = readEvents(await postTurn(here), isFinished);
    await until(() => isSuspendedOver(here, "b"));
    const following = openStream(`${eventsUrl(there)}?after=start`).then((stream) => readEvents(stream, isFinished));
    await allow(there, "b");
    await allow(there, "c");
    const mine = await reading;
    expect(knownBy(mine)).toEqual([["b", "c"], ...told]);
    expect(knownBy(await following)).toEqual([["b", "c"], ...told]);
    expect(mine.filter(({ event }) => isFinished(event))).toHaveLength(1);
  });
});

describe("a retried post of a turn that runs elsewhere", () => {
  it("is told each step as it is stored, and the end once", async () => {
    const answer = gatedAnswer("the ", "end");
    const steps = [{ text: "I look. ", calls: [{ id: "a", name: "look", input: { say: "look" } }] }, answer.step];
    const there = await openGateway(steps, {}, { tools });
    const here = await openGateway([], {}, { store: there.store });
    const first = readEvents(await postTurn(there), isFinished);
    await until(async () => (await there.store.inbox.read("s", "i"))?.state === "taken");
    const seen: ReceivedEvent[] = [];
    const again = readEvents(await postTurn(here), (event) => {
      seen.push({ id: "", event });
      return isFinished(event);
    });
    await until(() => Promise.resolve(seen.some(({ event }) => event.type === "tool.finished")));
    expect(seen.map(({ event }) => event.type)).toContain("text.delta");
    expect((await there.store.inbox.read("s", "i"))?.state).toBe("taken");
    await answer.letGo(5);
    const [whole, retold] = [await first, await again];
    expect(toldBy(retold)).toEqual(toldBy(whole));
    expect(retold.filter(({ event }) => isFinished(event))).toHaveLength(1);
  });

  it("in this process has its text live", async () => {
    const answer = gatedAnswer("one ", "two");
    const gateway = await openGateway([answer.step]);
    const first = readEvents(await postTurn(gateway), isFinished);
    await until(async () => (await gateway.store.inbox.read("s", "i"))?.state === "taken");
    const again = await postTurn(gateway);
    void answer.letGo(1);
    const live = await readEvents(again, ({ type }) => type === "text.delta");
    expect(live.at(-1)?.event).toMatchObject({ text: "one " });
    await answer.letGo(4);
    expect(toldBy(await first).at(-1)).toEqual(["turn.finished", "answered", "one two", "one two", ""]);
  });
});
