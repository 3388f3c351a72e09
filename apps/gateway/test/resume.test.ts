import { defineTool } from "@turnkeeper/agent-core";
import type { AnyTool } from "@turnkeeper/agent-core";
import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { isFinished, openStream, readEvents, toldBy } from "./inside/event-client.ts";
import type { ReceivedEvent } from "./inside/event-client.ts";
import { openGateway, post, until } from "./inside/open-gateway.ts";
import type { OpenedGateway } from "./inside/open-gateway.ts";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

const echo: AnyTool = defineTool({
  name: "echo",
  description: "Says it again.",
  input: z.object({ say: z.string() }),
  execute: ({ say }) => Promise.resolve(`echo ${say}`),
});

/** A turn with everything in it: reasoning, text, several calls at once, a call without a word, an answer. */
const richSteps: readonly ScriptedStep[] = [
  {
    parts: [
      { type: "reasoning-start", id: "r" },
      { type: "reasoning-delta", id: "r", delta: "Let me " },
      { type: "reasoning-delta", id: "r", delta: "think." },
      { type: "reasoning-end", id: "r" },
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "First " },
      { type: "text-delta", id: "t", delta: "I look. " },
      { type: "text-end", id: "t" },
      { type: "tool-call", toolCallId: "a", toolName: "echo", input: '{"say":"one"}' },
      { type: "tool-call", toolCallId: "b:1,%", toolName: "echo", input: '{"say":"two"}' },
      { type: "finish", usage, finishReason: { unified: "tool-calls", raw: undefined } },
    ],
  },
  { calls: [{ id: "c", name: "echo", input: { say: "three" } }] },
  { calls: [{ id: "d", name: "echo", input: { say: "four" } }], text: "Then " },
  { text: "the answer." },
];

const eventsUrl = ({ url }: OpenedGateway): string => `${url}/v1/sessions/s/events`;

async function streamedTurn({ url }: OpenedGateway, inputId = "i"): Promise<ReceivedEvent[]> {
  const headers = { accept: "text/event-stream" };
  return readEvents(await post(`${url}/v1/sessions/s/turns`, { input: "Hi", inputId }, headers));
}

describe("a client that comes back with Last-Event-ID", () => {
  it("is told the rest from the store, without a gap or a repeat, wherever it was cut off", async () => {
    const gateway = await openGateway(richSteps, {}, { tools: [echo] });
    const streamed = await streamedTurn(gateway);
    expect(streamed.filter(({ event }) => event.type === "tool.finished")).toHaveLength(4);
    const whole = toldBy(streamed);
    for (const [index, { id, event }] of streamed.entries()) {
      if (isFinished(event)) continue;
      const rest = await readEvents(await openStream(eventsUrl(gateway), id), isFinished);
      expect(toldBy([...streamed.slice(0, index + 1), ...rest])).toEqual(whole);
    }
  });

  it("may be cut off again in what it is told from the store", async () => {
    const gateway = await openGateway(richSteps, {}, { tools: [echo] });
    const streamed = await streamedTurn(gateway);
    const stored = await readEvents(await openStream(`${eventsUrl(gateway)}?after=start`), isFinished);
    expect(toldBy(stored)).toEqual(toldBy(streamed));
    for (const [index, { id, event }] of stored.entries()) {
      if (isFinished(event)) continue;
      const rest = await readEvents(
        await openStream(`${eventsUrl(gateway)}?after=${encodeURIComponent(id)}`),
        isFinished,
      );
      expect(toldBy([...stored.slice(0, index + 1), ...rest])).toEqual(toldBy(streamed));
    }
  });

  it("goes on live in the middle of an answer, and is told what was said meanwhile", async () => {
    const gates: (() => void)[] = [];
    const gateway = await openGateway([
      {
        parts: [
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: "one " },
          { type: "text-delta", id: "t", delta: "two " },
          { type: "text-delta", id: "t", delta: "three" },
          { type: "text-end", id: "t" },
          { type: "finish", usage, finishReason: { unified: "stop", raw: undefined } },
        ],
        between: () => new Promise((resolve) => gates.push(resolve)),
      },
    ]);
    const open = async (count: number): Promise<void> => {
      for (let opened = 0; opened < count; opened++) {
        await until(() => Promise.resolve(gates.length > 0));
        gates.shift()?.();
      }
    };
    const posted = post(`${gateway.url}/v1/sessions/s/turns`, { input: "Hi" }, { accept: "text/event-stream" });
    void open(1);
    const before = await readEvents(await posted, (event) => event.type === "text.delta");
    void open(1);
    const again = await openStream(eventsUrl(gateway), before.at(-1)?.id);
    void open(4);
    const after = await readEvents(again, isFinished);
    expect(toldBy([...before, ...after])).toEqual([
      ["turn.started", before.at(-1)?.event.turnId],
      ["turn.finished", "answered", "one two three", "one two three", ""],
    ]);
  });

  it("is told the end of a turn that is stopped after it came back, and the stop is answered at once", async () => {
    const gateway = await openGateway([{ silentAfter: "Once upon" }]);
    const posted = post(`${gateway.url}/v1/sessions/s/turns`, { input: "Hi" }, { accept: "text/event-stream" });
    const before = await readEvents(await posted, (event) => event.type === "text.delta");
    const again = await openStream(eventsUrl(gateway), before.at(-1)?.id);
    expect((await post(`${gateway.url}/v1/sessions/s/stop`, {})).status).toBe(202);
    const after = await readEvents(again, isFinished);
    expect(after.at(-1)?.event).toMatchObject({ outcome: "interrupted", reason: "user-stop", text: "Once upon" });
    expect(await gateway.store.leases.read("s")).toBeUndefined();
  });

  it("from before its turn began is told all of that turn and nothing of the one before", async () => {
    const gateway = await openGateway([{ text: "first" }, { text: "second" }]);
    await streamedTurn(gateway, "i1");
    const second = await streamedTurn(gateway, "i2");
    const accepted = second.find(({ event }) => event.type === "input.accepted");
    expect(accepted?.id).toBe("input:i2");
    const told = await readEvents(await openStream(eventsUrl(gateway), accepted?.id), isFinished);
    expect(toldBy(told)).toEqual(toldBy(second));
  });

  it("with an id that is none is refused, and with one of a turn that is gone is told so", async () => {
    const gateway = await openGateway([{ text: "Hello." }]);
    await streamedTurn(gateway);
    for (const id of ["7", "x".repeat(5000), "input:%", "a:1:2:%E0", "a:-1:0", "01ABC:1:1:x:y:z"])
      expect((await openStream(eventsUrl(gateway), id)).status).toBe(400);
    for (const id of ["01JABCDEFGHJKMNPQRSTVWXYZ0:1:0", "01JABCDEFGHJKMNPQRSTVWXYZ0:end", "input:nobody"])
      expect((await openStream(eventsUrl(gateway), id)).status).toBe(410);
    expect((await openStream(`${gateway.url}/v1/sessions/none/events`)).status).toBe(404);
  });
});

describe("a follower of a session", () => {
  it("is told of turns that run in another process, and of those here, in order, each once", async () => {
    const here = await openGateway([{ text: "first" }, { text: "third" }]);
    const there = await openGateway([{ text: "second" }], {}, { store: here.store });
    const ended: string[] = [];
    await streamedTurn(here, "i1");
    const following = readEvents(await openStream(eventsUrl(here)), (event) => {
      if (event.type === "turn.finished") ended.push(event.text);
      return ended.length === 2;
    });
    await streamedTurn(there, "i2");
    await streamedTurn(here, "i3");
    const told = await following;
    expect(ended).toEqual(["second", "third"]);
    expect(told.map(({ event }) => event.type).filter((type) => type.startsWith("turn."))).toEqual([
      "turn.started",
      "turn.finished",
      "turn.started",
      "turn.finished",
    ]);
    expect(told.flatMap(({ event }) => (event.type === "text.delta" ? [event.text] : [])).join("|")).toBe(
      "second|third",
    );
  });

  it("is told all of a turn elsewhere that ends while its entries are read", async () => {
    let answer = (): void => {};
    const isAsked = new Promise<void>((resolve) => (answer = resolve));
    const there = await openGateway([
      async () => {
        await isAsked;
        return { text: "all of it" };
      },
    ]);
    const held: (() => void)[] = [];
    let holds = false;
    // What it has read is old by the time that it is looked at.
    const transcript = new Proxy(there.store.transcript, {
      get: (port, name) =>
        name === "load"
          ? async (...request: Parameters<typeof port.load>) => {
              const loaded = await port.load(...request);
              if (holds) await new Promise<void>((resolve) => held.push(resolve));
              return loaded;
            }
          : Reflect.get(port, name),
    });
    const store = new Proxy(there.store, {
      get: (whole, name) => (name === "transcript" ? transcript : Reflect.get(whole, name)),
    });
    const here = await openGateway([], {}, { store });
    const posting = streamedTurn(there);
    await until(async () => (await there.store.turns.running("s")).length > 0);
    const following = readEvents(await openStream(`${eventsUrl(here)}?after=start`), isFinished);
    holds = true;
    await until(() => Promise.resolve(held.length > 0));
    answer();
    const whole = await posting;
    holds = false;
    held.shift()?.();
    expect(toldBy(await following)).toEqual(toldBy(whole));
  });

  it("of a retried post is told what the turn said, though another call ran it", async () => {
    const gateway = await openGateway(richSteps, {}, { tools: [echo] });
    const first = await streamedTurn(gateway);
    const again = await streamedTurn(gateway);
    expect(toldBy(again)).toEqual(toldBy(first));
    expect((await gateway.store.sessions.records("s"))?.turns).toHaveLength(1);
  });
});
