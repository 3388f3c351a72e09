import { CodedError } from "@turnkeeper/kernel";
import type { CompactionHealth } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import type { Agent, Turn, TurnEvent, TurnFinished } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { counted, overflow, talkativeModel, trickling, words } from "./long-talk.ts";
import type { TalkativeModel } from "./long-talk.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

type Summary = Parameters<typeof talkativeModel>[1];

const windowTokens = 2000;
const silent: ScriptedStep = { silentAfter: "" };
const refused = (code: string): ScriptedStep => ({
  fail: new CodedError(code, `${code} came.`, { context: { retryable: false } }),
});

/** A session whose every further turn finds it over its threshold; each of them answers a word. */
async function longSession(
  summary: Summary,
  window: number | undefined = windowTokens,
): Promise<{
  readonly agent: Agent;
  readonly model: TalkativeModel;
}> {
  const answers = [counted(words(900)), counted(words(900)), ...Array.from({ length: 30 }, () => counted("ok"))];
  const model = talkativeModel(answers, summary, window);
  const agent = await bench.agentOn(model, { compaction: { contextTimeoutMs: 20_000 }, modelAttempts: 1 });
  await bench.finished(agent.run("s", "first question"));
  await bench.finished(agent.run("s", "second question"));
  return { agent, model };
}

const compactions = async (turn: Turn): Promise<readonly TurnEvent[]> =>
  (await bench.eventsOf(turn)).filter(({ type }) => type.startsWith("compaction."));

/** Runs a turn and answers what was said of compactions in it. */
async function talk(agent: Agent): Promise<{ readonly finished: TurnFinished; readonly told: readonly TurnEvent[] }> {
  const turn = agent.run("s", "and now?");
  const finished = await bench.finished(turn);
  return { finished, told: await compactions(turn) };
}

async function health(): Promise<{ readonly health?: CompactionHealth; readonly coolDownMs: number }> {
  return bench.store.transcript.compactionHealth("s");
}

describe("a summary that fails", () => {
  it("defers the next ones softly for 60, 300, 900 and 900 s where it was cut at the output limit", async () => {
    const { agent, model } = await longSession(counted("cut", "length"));
    for (const [index, seconds] of [60, 300, 900, 900].entries()) {
      const { finished, told } = await talk(agent);
      expect(finished).toMatchObject({ outcome: "answered", text: "ok" });
      expect(told).toMatchObject([
        { type: "compaction.started" },
        { type: "compaction.deferred", reason: "failed", retryInMs: seconds * 1000 },
      ]);
      expect(model.summaries).toHaveLength(index + 1);
      expect((await health()).health).toMatchObject({ outputCapCount: index + 1, stallCount: 0 });
      await bench.host.advance(seconds * 1000 - 2000);
      const early = await talk(agent);
      expect(early.finished.outcome).toBe("answered");
      expect(early.told).toMatchObject([{ type: "compaction.deferred", reason: "cool-down" }]);
      expect(model.summaries).toHaveLength(index + 1);
      await bench.host.advance(3000);
    }
  });

  it("counts stalls on a counter of their own, and makes do without a model at the second", async () => {
    const { agent, model } = await longSession([counted("cut", "length"), silent, silent, counted("fine")]);
    await talk(agent);
    await bench.host.advance(61_000);
    const first = await talk(agent);
    expect(first.told).toMatchObject([{}, { reason: "failed", retryInMs: 60_000 }]);
    expect((await health()).health).toMatchObject({ outputCapCount: 1, stallCount: 1 });
    await bench.host.advance(61_000);
    const second = await talk(agent);
    expect(second.finished).toMatchObject({ outcome: "answered", text: "ok" });
    expect(second.told).toMatchObject([{}, { type: "compaction.finished", method: "fallback" }]);
    // What was made without a model says nothing for the model.
    const after = await health();
    expect(after.health).toMatchObject({ stallCount: 2, outputCapCount: 1 });
    expect(after.coolDownMs).toBeGreaterThan(290_000);
    expect(model.summaries).toHaveLength(3);
    expect(wordsOfContext(await bench.store.transcript.load("s"))).toContain("No model was there");
  });

  it("never cools down for less than a summary may be silent", async () => {
    const model = talkativeModel([counted(words(1800)), counted("ok"), counted("ok")], silent, windowTokens);
    const agent = await bench.agentOn(model, { compaction: { contextTimeoutMs: 120_000 } });
    await bench.finished(agent.run("s", "first question"));
    expect((await talk(agent)).told).toMatchObject([{}, { reason: "failed", retryInMs: 120_000 }]);
  });

  it.each(["MODEL_BAD_RESPONSE", "MODEL_STREAM_CUT", "MODEL_EMPTY"])(
    "waits flat 30 s after %s, and counts nothing",
    async (code) => {
      const { agent } = await longSession([refused(code), refused(code), counted("fine")]);
      for (const _attempt of [1, 2]) {
        expect((await talk(agent)).told).toMatchObject([{}, { reason: "failed", retryInMs: 30_000 }]);
        expect((await health()).health).toMatchObject({ stallCount: 0, outputCapCount: 0, error: `${code} came.` });
        await bench.host.advance(31_000);
      }
      expect((await talk(agent)).told).toMatchObject([{}, { type: "compaction.finished", method: "model" }]);
      expect(await health()).toEqual({ coolDownMs: 0 });
    },
  );

  it("that says nothing is as garbled as one that is no JSON", async () => {
    const { agent } = await longSession([counted("   ")]);
    expect((await talk(agent)).told).toMatchObject([{}, { reason: "failed", retryInMs: 30_000 }]);
  });

  it("keeps the transcript and says so where the model does not answer at all", async () => {
    const { agent, model } = await longSession(refused("MODEL_OVERLOADED"));
    expect((await talk(agent)).told).toMatchObject([{}, { reason: "unavailable", retryInMs: 60_000 }]);
    expect(model.summaries).toHaveLength(1);
    expect((await bench.store.transcript.load("s")).compactionCount).toBe(0);
  });

  it("cools down for whoever runs the session next, too; a new session starts without", async () => {
    const { agent } = await longSession(counted("cut", "length"));
    await talk(agent);
    const other = await bench.agentOn(talkativeModel([counted("ok")], counted("never"), windowTokens));
    expect((await talk(other)).told).toMatchObject([{ type: "compaction.deferred", reason: "cool-down" }]);
    expect(await bench.store.transcript.compactionHealth("new")).toEqual({ coolDownMs: 0 });
  });

  it.each([
    ["leaves a slow model alone as long as something comes", 5, { type: "compaction.finished", method: "model" }],
    ["ends a summary that comes to no end", 1000, { reason: "failed", retryInMs: 60_000 }],
  ])("%s", async (_rule, pieceCount, told) => {
    const { model } = await longSession(counted("never asked"));
    const options = { compaction: { contextTimeoutMs: 20_000 } };
    const slow = await bench.agentOn(trickling(model, bench.host, 15_000, pieceCount), options);
    expect((await talk(slow)).told).toMatchObject([{}, told]);
  });
});

describe("a provider that proves the request too long", () => {
  it("passes the cool-down by: the summary is asked for once, and ordinary pressure is deferred", async () => {
    const answers = [counted(words(900)), counted(words(900)), counted("ok"), counted("ok"), overflow(), counted("ok")];
    const model = talkativeModel(answers, [counted("cut", "length"), counted("SUMMARY")], windowTokens);
    const agent = await bench.agentOn(model, { compaction: { contextTimeoutMs: 20_000 } });
    for (const text of ["first question", "second question", "arms the cool-down"])
      await bench.finished(agent.run("s", text));
    expect((await health()).coolDownMs).toBeGreaterThan(0);
    expect((await talk(agent)).told).toMatchObject([{ reason: "cool-down" }]);
    expect(model.summaries).toHaveLength(1);
    const { finished, told } = await talk(agent);
    expect(finished).toMatchObject({ outcome: "answered", text: "ok" });
    expect(told).toMatchObject([
      { type: "compaction.deferred", cause: "threshold", reason: "cool-down" },
      { type: "compaction.started", cause: "overflow" },
      { type: "compaction.finished", cause: "overflow", method: "model" },
    ]);
    expect(model.summaries).toHaveLength(2);
    expect(await health()).toEqual({ coolDownMs: 0 });
  });

  it("is tried in bounds: each failure arms the ladder anew, and the last does without a model", async () => {
    const answers = [counted(words(900)), overflow(), counted("ok")];
    const model = talkativeModel(answers, counted("cut", "length"));
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    const { finished, told } = await talk(agent);
    expect(finished).toMatchObject({ outcome: "answered", text: "ok" });
    expect(told.filter(({ type }) => type === "compaction.deferred")).toMatchObject([
      { retryInMs: 120_000 },
      { retryInMs: 300_000 },
    ]);
    expect(told.at(-1)).toMatchObject({ type: "compaction.finished", method: "fallback" });
    expect(model.summaries).toHaveLength(3);
    expect((await health()).health).toMatchObject({ outputCapCount: 3 });
    expect((await health()).coolDownMs).toBeGreaterThan(890_000);
  });

  it("is one that left no room for a single word of an answer, too", async () => {
    const model = talkativeModel([counted(words(900)), counted("", "length"), counted("ok")], counted("SUMMARY"));
    const agent = await bench.agentOn(model, { modelAttempts: 1 });
    await bench.finished(agent.run("s", "first question"));
    const { finished, told } = await talk(agent);
    expect(finished).toMatchObject({ outcome: "answered", text: "ok" });
    expect(told).toMatchObject([{ cause: "overflow" }, { type: "compaction.finished", cause: "overflow" }]);
  });

  it("ends the turn as too long where nothing helps, after so many tries", async () => {
    const model = talkativeModel([counted(words(900)), ...Array.from({ length: 9 }, () => overflow())], counted("SUM"));
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    const { finished } = await talk(agent);
    expect(finished).toMatchObject({ outcome: "failed", reason: "MODEL_CONTEXT_OVERFLOW" });
    expect(model.turns.length).toBeLessThanOrEqual(5);
    expect(model.summaries.length).toBeLessThanOrEqual(3);
  });

  it("does not skip the breaker: what made no difference twice is not tried a third time, but by hand", async () => {
    const thin = { stallCount: 0, outputCapCount: 0, thinCount: 2 };
    const model = talkativeModel([counted(words(900)), overflow(), overflow(), counted("ok")], counted("SUMMARY"));
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    const { load, compactionHealth } = bench.store.transcript;
    bench.store.transcript.compactionHealth = async () => ({ health: thin, coolDownMs: 0 });
    const turn = agent.run("s", words(1200));
    expect(await bench.finished(turn)).toMatchObject({ outcome: "failed", reason: "MODEL_CONTEXT_OVERFLOW" });
    expect(await compactions(turn)).toMatchObject([{ type: "compaction.deferred", reason: "ineffective" }]);
    expect(model.summaries).toHaveLength(0);
    const byHand = agent.compact("s");
    expect(await bench.finished(byHand)).toMatchObject({ outcome: "answered" });
    bench.store.transcript.compactionHealth = compactionHealth;
    expect((await load("s")).compactionCount).toBe(1);
    expect(await health()).toEqual({ coolDownMs: 0 });
  });
});

describe("a stop while a summary is made", () => {
  const cut = counted("cut", "length");
  const cases = [
    { name: "nothing", summaries: [silent], answers: [], restMs: undefined },
    { name: "a cool-down that has passed", summaries: [cut, silent], answers: [counted("ok")], restMs: 61_000 },
    { name: "a cool-down that lasts", summaries: [cut, silent], answers: [counted("ok"), overflow()], restMs: 10_000 },
  ];

  it.each(cases)("puts back exactly what was known before: $name", async ({ summaries, answers, restMs }) => {
    const long = [counted(words(900)), counted(words(900))];
    const model = talkativeModel([...long, ...answers], summaries, windowTokens);
    const agent = await bench.agentOn(model, { compaction: { contextTimeoutMs: 20_000 } });
    await bench.finished(agent.run("s", "first question"));
    await bench.finished(agent.run("s", "second question"));
    if (restMs !== undefined) {
      await talk(agent);
      await bench.host.advance(restMs);
    }
    const before = (await health()).health;
    const turn = agent.run("s", "and now?");
    for (let step = 0; model.summaries.length < summaries.length && step < 200; step++) await bench.host.advance(1);
    expect((await health()).health).toMatchObject({ stallCount: 1 });
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect((await health()).health).toEqual(before);
    expect((await bench.store.transcript.load("s")).compactionCount).toBe(0);
  });

  it("counts a summary whose process died as one that stalled", async () => {
    const { agent, model } = await longSession(silent);
    const turn = agent.run("s", "and now?");
    for (let step = 0; model.summaries.length < 1 && step < 200; step++) await bench.host.advance(1);
    // What another process finds that opens the store now.
    const found = await bench.store.reopen().transcript.compactionHealth("s");
    expect(found.health).toMatchObject({ stallCount: 1, error: expect.stringContaining("ended before it came") });
    expect(found.coolDownMs).toBeGreaterThan(0);
    turn.stop();
    await bench.finished(turn);
  });
});

function wordsOfContext({ entries }: { readonly entries: readonly { readonly body: object }[] }): string {
  return JSON.stringify(entries.map(({ body }) => body));
}
