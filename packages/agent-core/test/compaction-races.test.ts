import type { CompactionRequest, StateStore } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { contextBodies } from "../src/compaction/context-bodies.ts";
import { Conversation } from "../src/conversation.ts";
import { defineTool } from "../src/index.ts";
import type { AnyTool, Turn } from "../src/index.ts";
import { strictestProvider } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { counted, countedCalls, overflow, talkativeModel, transcriptOf, words, wordsOf } from "./long-talk.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

/** A store whose compactions go through `apply`. */
function storeWith(
  store: StateStore,
  apply: (
    request: CompactionRequest,
    inner: StateStore["transcript"],
  ) => ReturnType<StateStore["transcript"]["applyCompaction"]>,
): StateStore {
  const transcript = new Proxy(store.transcript, {
    get: (target, name): unknown =>
      name === "applyCompaction" ? (request: CompactionRequest) => apply(request, target) : Reflect.get(target, name),
  });
  return { ...store, transcript };
}

/** Something is said under the turn's own grant while its summary is being made. */
async function speakWhileSummarising(store: StateStore): Promise<readonly string[]> {
  const model = talkativeModel(
    [counted(words(900)), counted(words(900)), counted("ok")],
    async (request) => {
      const [running] = await bench.store.turns.running("s");
      const lease = await bench.store.leases.read("s");
      if (!running || !lease) throw new Error("No turn runs.");
      const { turnId, fencingToken } = running.turn;
      await bench.store.transcript.append({
        grant: { sessionId: "s", holderId: lease.holder.holderId, fencingToken },
        turnId,
        entries: [{ key: "meanwhile", body: { role: "user", text: "said meanwhile" } }],
      });
      return counted("SUMMARY")(request);
    },
    2000,
  );
  const agent = await bench.agentOn(model, {}, [], store);
  for (const text of ["first question", "second question", "third question"])
    expect(await bench.finished(agent.run("s", text))).toMatchObject({ outcome: "answered" });
  expect(model.summaries).toHaveLength(1);
  expect(wordsOf(model.summaries[0] as never)).not.toContain("said meanwhile");
  const asked = wordsOf(model.turns[2] as never);
  return ["SUMMARY", "third question", "said meanwhile"].filter((text) => asked.includes(text));
}

describe("a compaction and what happens beside it", () => {
  it("COMP-1: what is appended while the model summarises is behind the summary, in the store and in the request", async () => {
    expect(await speakWhileSummarising(bench.store)).toEqual(["SUMMARY", "third question", "said meanwhile"]);
    const { context } = await transcriptOf(bench.store, "s");
    expect(context.filter(({ key }) => key === "meanwhile")).toHaveLength(1);
  });

  it("COMP-1 control: without the basis from before the summary it fails: what nobody summarised is gone", async () => {
    const store = storeWith(bench.store, async (request, transcript) => {
      const { entries } = await transcript.load("s");
      const throughSeq = entries.at(-1)?.seq ?? 0;
      return transcript.applyCompaction({ ...request, basis: { ...request.basis, throughSeq } });
    });
    expect(await speakWhileSummarising(store)).not.toContain("said meanwhile");
  });

  /** A hard stop comes while the commit is on its way to the store. */
  async function stopAmidCommit(isTorn: boolean): Promise<{ readonly applied: boolean; readonly finished: unknown }> {
    let turn: Turn | undefined;
    const store = storeWith(bench.store, async (request, transcript) => {
      turn?.stop({ hard: true });
      await Promise.resolve();
      // A commit that does not own itself gives up at the stop.
      if (isTorn) throw new Error("torn");
      return transcript.applyCompaction(request);
    });
    const model = talkativeModel([counted(words(900)), counted(words(900))], counted("SUMMARY"), 2000);
    const agent = await bench.agentOn(model, {}, [], store);
    await bench.finished(agent.run("s", "first question"));
    await bench.finished(agent.run("s", "second question"));
    turn = agent.run("s", "third question");
    const finished = await bench.finished(turn);
    return { applied: (await bench.store.transcript.load("s")).compactionCount === 1, finished };
  }

  it("COMP-2: a stop during the commit does not tear it: the summary stands, and the turn is interrupted", async () => {
    const { applied, finished } = await stopAmidCommit(false);
    expect(applied).toBe(true);
    expect(finished).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(await bench.store.transcript.compactionHealth("s")).toEqual({ coolDownMs: 0 });
  });

  it("COMP-2 control: without a commit that owns itself it fails: the summary is lost", async () => {
    expect((await stopAmidCommit(true)).applied).toBe(false);
  });

  it("a stop before the commit prevents it, and the transcript is as it was", async () => {
    let turn: Turn | undefined;
    const model = talkativeModel(
      [counted(words(900)), counted(words(900))],
      (request) => {
        turn?.stop({ hard: true });
        return counted("SUMMARY")(request);
      },
      2000,
    );
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    await bench.finished(agent.run("s", "second question"));
    turn = agent.run("s", "third question");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
    const { context, compactionCount } = await transcriptOf(bench.store, "s");
    expect(compactionCount).toBe(0);
    expect(context.map(({ body }) => body.role)).toEqual(["user", "assistant", "user", "assistant", "user"]);
  });

  it("a session that another took meanwhile is compacted by nobody but that one", async () => {
    const model = talkativeModel(
      [counted(words(900)), counted(words(900))],
      async (request) => {
        const lease = await bench.store.leases.read("s");
        if (lease) {
          const { holder, fencingToken } = lease;
          await bench.store.turns.settleForeign({ sessionId: "s", holderId: holder.holderId, fencingToken });
        }
        return counted("SUMMARY")(request);
      },
      2000,
    );
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    await bench.finished(agent.run("s", "second question"));
    const finished = await bench.finished(agent.run("s", "third question"));
    expect(finished).toMatchObject({ outcome: "interrupted", reason: "lease-lost" });
    expect((await transcriptOf(bench.store, "s")).compactionCount).toBe(0);
  });
});

describe("a turn of many steps", () => {
  const read: AnyTool = defineTool({
    name: "read",
    description: "Reads.",
    input: z.object({ n: z.number() }),
    execute: async ({ n }) => `page ${n} ${words(500)}`,
  });
  const reads = (n: number): ReturnType<typeof countedCalls> =>
    countedCalls({ id: `c${n}`, name: "read", input: { n } });

  it("keeps every message of every segment readable through five compactions, and every pair whole", async () => {
    const answers = Array.from({ length: 17 }, (_, index) => reads(index + 1));
    const model = talkativeModel([...answers, counted("done"), counted("pages")], counted("SUMMARY"), 2000);
    const agent = await bench.agentOn(model, {}, [read]);
    const turn = agent.run("s", "read all pages");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "done" });
    const { all, context, compactionCount } = await transcriptOf(bench.store, "s");
    expect(compactionCount).toBeGreaterThanOrEqual(5);
    const pages = all.flatMap(({ body }) =>
      body.role === "tool" ? [JSON.stringify(body.output).slice(1, 8).trim()] : [],
    );
    expect(pages).toEqual(answers.map((_, index) => `page ${index + 1}`));
    expect(new Set(all.map(({ key }) => key)).size).toBe(all.length);
    expect(context[0]?.body).toMatchObject({ role: "summary", userTexts: ["read all pages"] });
    for (const { prompt } of model.turns) {
      expect(strictestProvider(prompt)).toEqual([]);
      expect(JSON.stringify(prompt)).toContain("read all pages");
    }
    // The next turn goes on from what this process remembers, and that is what the store has.
    const { entries } = await bench.store.transcript.load("s");
    const stored = new Conversation(model.id, contextBodies(entries));
    stored.add({ role: "user", text: "what did you read?" });
    const next = agent.run("s", "what did you read?");
    await bench.finished(next);
    expect((await bench.eventsOf(next)).map(({ type }) => type)).not.toContain("compaction.started");
    expect(model.turns.at(-1)?.prompt).toEqual(stored.prompt(undefined));
  });

  it("mends a result that is too long for any request, with ever less kept word for word", async () => {
    const huge: AnyTool = defineTool({
      name: "read",
      description: "Reads.",
      input: z.object({ n: z.number() }),
      execute: async () => `the huge page ${words(9000)}`,
    });
    const fits = (answer: ReturnType<typeof counted>) => (request: Parameters<typeof answer>[0]) =>
      JSON.stringify(request.prompt).length > 12_000 ? overflow() : answer(request);
    const model = talkativeModel(
      [reads(1), fits(counted("a")), fits(counted("b")), fits(counted("c"))],
      counted("SUMMARY"),
    );
    const agent = await bench.agentOn(model, {}, [huge]);
    const turn = agent.run("s", "read it");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    const { all, context } = await transcriptOf(bench.store, "s");
    expect(JSON.stringify(all)).toContain("the huge page");
    expect(context[0]?.body).toMatchObject({ role: "summary", userTexts: ["read it"] });
  });
});

describe("a compaction by hand", () => {
  it("is a turn of its own without an input, and answers that a busy session is busy", async () => {
    let resolve = (): void => {};
    const promise = new Promise<void>((release) => (resolve = release));
    const model = talkativeModel(
      [
        counted(words(300)),
        async () => {
          await promise;
          return { text: "slow" };
        },
      ],
      counted("SUMMARY"),
    );
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    const slow = agent.run("s", "second question");
    await bench.host.advance(20);
    const busy = agent.compact("s");
    expect(await bench.finished(busy)).toMatchObject({ outcome: "busy", reason: "session_busy" });
    resolve();
    await bench.finished(slow);
    const byHand = agent.compact("s");
    expect(await bench.finished(byHand)).toMatchObject({ outcome: "answered" });
    expect((await bench.eventsOf(byHand)).map(({ type }) => type)).toEqual([
      "turn.started",
      "compaction.started",
      "usage",
      "compaction.finished",
      "turn.finished",
    ]);
    expect(await bench.store.leases.read("s")).toBeUndefined();
  });

  it("runs the orphans that came meanwhile, and is stopped like any turn", async () => {
    const model = talkativeModel(
      [counted(words(300)), counted("queued one")],
      [
        async (request) => {
          await agent.run("s", "came meanwhile", { onBusy: "queue" }).result;
          return counted("SUMMARY")(request);
        },
        { silentAfter: "" },
      ],
    );
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    await bench.finished(agent.compact("s"));
    const idle = agent.idle();
    await bench.host.advance(1000);
    await idle;
    expect(model.turns).toHaveLength(2);
    const again = agent.compact("s");
    await bench.host.advance(20);
    again.stop();
    expect(await bench.finished(again)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(await bench.store.transcript.compactionHealth("s")).toEqual({ coolDownMs: 0 });
  });

  it("says that a session which is not there is not, and makes none", async () => {
    const agent = await bench.agentOn(talkativeModel([], counted("SUMMARY")));
    expect(await bench.finished(agent.compact("nobody"))).toMatchObject({
      outcome: "failed",
      reason: "SESSION_UNKNOWN",
    });
    expect(await bench.store.sessions.read("nobody")).toBeUndefined();
  });

  it.each([false, true])("comes to its end where a close drains, unless closed again (again: %s)", async (again) => {
    let resolve = (): void => {};
    const promise = new Promise<void>((release) => (resolve = release));
    const model = talkativeModel([counted(words(300))], async (request) => {
      await promise;
      return counted("SUMMARY")(request);
    });
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    const byHand = agent.compact("s");
    await bench.host.advance(20);
    void agent.close({ drain: true });
    await bench.host.advance(1000);
    expect(await bench.store.turns.running("s")).toHaveLength(1);
    if (again) void agent.close();
    await bench.host.advance(1000);
    resolve();
    expect(await bench.finished(byHand)).toMatchObject(
      again ? { outcome: "interrupted", reason: "shutdown" } : { outcome: "answered" },
    );
  });

  it("ends as shut down when its agent is closed", async () => {
    const model = talkativeModel([counted(words(300))], { silentAfter: "" });
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    const byHand = agent.compact("s");
    await bench.host.advance(20);
    void agent.close();
    expect(await bench.finished(byHand)).toMatchObject({ outcome: "interrupted", reason: "shutdown" });
  });
});
