/** What a stop must not do besides: speak for an earlier turn, reach into a later one, or have a turn run again. */
import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { ToolBody } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { AnyTool } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
let ran: string[] = [];
benchOfEachTest((fresh) => {
  bench = fresh;
  ran = [];
});

const charge: AnyTool = defineTool({
  name: "charge",
  description: "Does what must not be done twice.",
  input: z.object({ what: z.string() }),
  execute: async ({ what }, { signal }) => {
    ran.push(signal.aborted ? `${what}, on an aborted signal` : what);
    return "done";
  },
});
const charges = (what: string) => ({ calls: [{ id: what, name: "charge", input: { what } }] });

async function results(): Promise<readonly ToolBody[]> {
  const { entries } = await bench.store.transcript.load("s");
  return entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
}

describe("a turn that is stopped before it said a word", () => {
  it.each(["by a stop", "by a newer message"])("tells no word of the answers before it: %s", async (how) => {
    const { agent } = await bench.agent([{ text: "The earlier answer." }, { silentAfter: "" }, { text: "The newer." }]);
    await bench.finished(agent.run("s", "first"));
    const stopped = agent.run("s", "second");
    await bench.host.advance(50);
    const newer = how === "by a stop" ? undefined : agent.run("s", "third", { onBusy: "interrupt" });
    if (!newer) stopped.stop();
    expect(await bench.finished(stopped)).toMatchObject({ outcome: "interrupted", text: "" });
    expect(JSON.stringify(await bench.eventsOf(stopped))).not.toContain("earlier");
    const repeat = await bench.finished(agent.run("s", "second", { inputId: stopped.inputId }));
    expect(repeat).toMatchObject({ outcome: "interrupted", text: "" });
    if (newer) expect(await bench.finished(newer)).toMatchObject({ outcome: "answered", text: "The newer." });
  });
});

describe("what is queued behind a turn that is stopped", () => {
  it.each([false, true])("runs in its order, on signals of its own (hard: %s)", async (hard) => {
    const { agent } = await bench.agent(
      [{ silentAfter: "…" }, charges("A"), { text: "a" }, charges("B"), { text: "b" }],
      {},
      [charge],
    );
    const first = agent.run("s", "go");
    await bench.host.advance(20);
    const queued = [agent.run("s", "A"), agent.run("s", "B")];
    await bench.host.advance(20);
    first.stop({ hard });
    expect(await bench.finished(first)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    for (const [index, turn] of queued.entries())
      expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "ab"[index] });
    expect(ran).toEqual(["A", "B"]);
    expect((await results()).map(({ callId, status }) => [callId, status])).toEqual([
      ["A", "ok"],
      ["B", "ok"],
    ]);
  });
});

describe("a turn that was stopped as stalled", () => {
  it("is over: neither its message nor its calls run again, whoever serves the store and whoever repeats it", async () => {
    const liveness = { timeoutMs: 30_000, pollMs: 1000 };
    const { agent, model } = await bench.agent(
      [charges("card"), { silentAfter: "" }, { text: "Next." }],
      { liveness },
      [charge],
    );
    const other = await bench.agent([], { liveness }, [charge]);
    const turn = agent.run("s", "pay", { inputId: "pay" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "stalled" });
    await other.agent.runWaiting({ sessionCount: 5 });
    await bench.host.advance(300_000);
    const repeats = [agent, other.agent].map((one) => one.run("s", "pay", { inputId: "pay" }));
    for (const repeat of repeats)
      expect(await bench.finished(repeat)).toMatchObject({ outcome: "interrupted", reason: "stalled" });
    expect(ran).toEqual(["card"]);
    expect([model.requests.length, other.model.requests.length]).toEqual([2, 0]);
    expect(await bench.finished(agent.run("s", "and?"))).toMatchObject({ outcome: "answered", text: "Next." });
    expect(ran).toEqual(["card"]);
  });
});

describe("a stop between a call and its tool", () => {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: undefined },
  };
  const parts: LanguageModelV3StreamPart[] = [
    { type: "tool-input-start", id: "card", toolName: "charge" },
    { type: "tool-input-delta", id: "card", delta: '{"what":"card"}' },
    { type: "tool-input-end", id: "card" },
    { type: "tool-call", toolCallId: "card", toolName: "charge", input: '{"what":"card"}' },
    { type: "finish", usage, finishReason: { unified: "tool-calls", raw: undefined } },
  ];

  it.each(parts.map((_part, index) => index))(
    "leaves a conversation that goes on, whatever of the call had come (%i parts)",
    async (count) => {
      const { agent, model } = await bench.agent(
        [{ parts: parts.slice(0, count + 1), isEndless: true }, { text: "Well." }],
        {},
        [charge],
      );
      const turn = agent.run("s", "pay");
      await bench.host.advance(20);
      turn.stop();
      expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
      expect(ran).toEqual([]);
      // The scripted model refuses what a strict provider would: a call without its result, a result without its call.
      expect(await bench.finished(agent.run("s", "and?"))).toMatchObject({ outcome: "answered", text: "Well." });
      expect(model.requests).toHaveLength(2);
    },
  );

  it("that comes while the call is being stored runs no tool, and gives the call its one result", async () => {
    const { agent } = await bench.agent([charges("card"), { text: "Well." }], {}, [charge]);
    const { transcript } = bench.store;
    const append = transcript.append.bind(transcript);
    const turn = agent.run("s", "pay");
    transcript.append = async (request) => {
      const answer = await append(request);
      if (JSON.stringify(request).includes('"card"')) turn.stop();
      return answer;
    };
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(ran).toEqual([]);
    expect(await results()).toMatchObject([
      { callId: "card", status: "interrupted", output: expect.stringContaining("Not run") },
    ]);
    expect(await bench.finished(agent.run("s", "and?"))).toMatchObject({ outcome: "answered", text: "Well." });
  });
});

it("a stop of a turn whose process has died settles its calls and its subagents too", async () => {
  const { agent } = await bench.agent([{ text: "Well." }]);
  await bench.host.advance(10);
  const presence = await openProcessPresence({ host: bench.host });
  const runner = { ...presence.identity, runnerId: "dead" };
  const holder = { ...presence.identity, holderId: "dead-holder" };
  const { inbox, leases, transcript, turns } = bench.store;
  await inbox.offer({ sessionId: "s", inputId: "i", text: "go", onBusy: "wait", runner });
  const granted = await leases.acquire({
    sessionId: "s",
    holder,
    ttlMs: 300_000,
    begin: { turnId: "dead-turn", runnerId: "dead" },
  });
  if (granted.kind !== "granted") throw new Error(`The session is ${granted.kind}.`);
  const parts = [{ type: "tool-call", callId: "task", name: "delegate", input: {} }] as const;
  const entries = [{ key: "answer", body: { role: "assistant", model: "scripted/model", parts } }] as const;
  const grant = { sessionId: "s", holderId: holder.holderId, fencingToken: granted.fencingToken };
  await transcript.append({ grant, turnId: "dead-turn", entries });
  const parent = { sessionId: "s", turnId: "dead-turn", callId: "task" };
  await inbox.offer({ sessionId: "child", inputId: "c", text: "look", onBusy: "wait", runner, parent });
  await presence.close();

  expect(await agent.stop("s")).toEqual({ kind: "nothing-running" });
  expect(await turns.running()).toEqual([]);
  expect(await results()).toMatchObject([{ callId: "task", status: "unknown" }]);
  expect((await inbox.pending("s")).map(({ child }) => child?.callId)).toEqual(["task"]);
  expect(await bench.finished(agent.run("s", "and?"))).toMatchObject({ outcome: "answered", text: "Well." });
});
