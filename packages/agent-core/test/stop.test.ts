import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

/** A tool that runs until its signal aborts, or for ever. */
function waiting(
  name: string,
  obeys: boolean,
  onStart: () => void,
): ReturnType<typeof defineTool<Record<string, never>>> {
  return defineTool({
    name,
    description: "Waits.",
    input: z.object({}) as never,
    execute: (_input, { signal }) => {
      onStart();
      return new Promise((_resolve, reject) => {
        if (obeys) signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
      });
    },
  });
}

describe("a stop", () => {
  it("keeps and marks what had come of the answer, and leaves the session usable", async () => {
    const { agent, model } = await bench.agent([{ silentAfter: "Once upon a time" }, { text: "Hello again." }]);
    const turn = agent.run("s", "Tell me a story");
    await bench.host.advance(10);
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({
      outcome: "interrupted",
      reason: "user-stop",
      text: "Once upon a time",
    });
    const entries = (await bench.store.transcript.load("s")).entries;
    expect(entries.at(-1)?.body).toMatchObject({
      role: "assistant",
      partial: true,
      parts: [{ type: "text", text: "Once upon a time" }],
    });
    expect(await bench.finished(agent.run("s", "Hello"))).toMatchObject({ outcome: "answered" });
    expect(model.requests[1]?.prompt).toHaveLength(3);
  });

  it("INT-2: after it was observed no further tool starts, and every call has its result", async () => {
    const started: string[] = [];
    const { agent } = await bench.agent(
      [
        {
          calls: [
            { name: "first", input: {} },
            { name: "second", input: {} },
          ],
        },
        { text: "never asked" },
      ],
      { toolConcurrency: 1 },
      [waiting("first", true, () => started.push("first")), waiting("second", true, () => started.push("second"))],
    );
    const turn = agent.run("s", "go");
    await bench.host.advance(10);
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(started).toEqual(["first"]);
    const results = (await bench.store.transcript.load("s")).entries.flatMap(({ body }) =>
      body.role === "tool" ? [body] : [],
    );
    expect(results).toMatchObject([
      { status: "interrupted", output: "stopped" },
      { status: "interrupted", output: expect.stringContaining("Not run") },
    ]);
  });

  it("is told with who asked for it, stored on its turn, and told the same to a repeat", async () => {
    const { agent } = await bench.agent([{ silentAfter: "half" }, { text: "whole" }]);
    const turn = agent.run("s", "go", { inputId: "one" });
    await bench.host.advance(50);
    turn.stop({ by: "cli pid 4711" });
    const finished = await bench.finished(turn);
    expect(finished).toMatchObject({ outcome: "interrupted", reason: "user-stop", by: "cli pid 4711" });
    const { turnId = "" } = finished;
    expect(await bench.store.turns.read("s", turnId)).toMatchObject({
      stop: { hard: false, reason: "user-stop", by: "cli pid 4711", atMs: expect.any(Number) },
    });
    const again = await bench.finished(agent.run("s", "go", { inputId: "one" }));
    expect(again).toMatchObject({ turnId, reason: "user-stop", by: "cli pid 4711" });
    expect(await bench.finished(agent.run("s", "on"))).not.toHaveProperty("by");
  });

  it("leaves behind a tool that ignores it, soon when it is hard", async () => {
    const { agent } = await bench.agent([{ calls: [{ name: "deaf", input: {} }] }], {}, [
      waiting("deaf", false, () => {}),
    ]);
    const turn = agent.run("s", "go");
    await bench.host.advance(10);
    turn.stop({ hard: true });
    await bench.host.advance(1900);
    expect((await bench.store.turns.running("s")).length).toBe(1);
    await bench.host.advance(200);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
    const last = (await bench.store.transcript.load("s")).entries.at(-1);
    expect(last?.body).toMatchObject({ status: "interrupted", output: expect.stringContaining("left behind") });
  });

  it("asked for in another process reaches the turn within a second", async () => {
    const holder = await bench.agent([{ silentAfter: "…" }]);
    const other = await bench.agent([]);
    const turn = holder.agent.run("s", "go");
    await bench.host.advance(10);
    expect(await other.agent.stop("s", { by: "the other" })).toMatchObject({ kind: "requested" });
    let finished = false;
    void turn.result.then(() => (finished = true));
    await bench.host.advance(1000);
    expect(finished).toBe(true);
    expect(await other.agent.stop("s")).toEqual({ kind: "nothing-running" });
  });

  it("rule 7.18: of a waiting call leaves its input in the queue when soft and cancels it when hard", async () => {
    const holder = await bench.agent([{ silentAfter: "…" }, { text: "run by whoever has the session" }]);
    const waiter = await bench.agent([]);
    const running = holder.agent.run("s", "go");
    await bench.host.advance(10);
    const hard = waiter.agent.run("s", "cancel me");
    await bench.host.advance(10);
    hard.stop({ hard: true });
    expect(await bench.finished(hard)).toMatchObject({ outcome: "cancelled", reason: "user-stop" });
    const soft = waiter.agent.run("s", "keep me");
    await bench.host.advance(10);
    soft.stop();
    expect(await bench.finished(soft)).toMatchObject({ outcome: "queued", reason: "user-stop" });
    // Nobody waits for it there any more: it is left to whoever has the session next.
    expect(await bench.store.inbox.pending("s")).toMatchObject([{ text: "keep me" }]);
    expect((await bench.store.inbox.pending("s"))[0]).not.toHaveProperty("runner");
    running.stop();
    await bench.finished(running);
    await bench.host.advance(1000);
    expect(await bench.store.inbox.read("s", soft.inputId)).toMatchObject({ state: "settled", end: "answered" });
    expect(await bench.store.inbox.read("s", hard.inputId)).toMatchObject({ state: "settled", end: "cancelled" });
    expect(waiter.model.requests).toEqual([]);
  });

  it("of a waiting call takes its input from no other call that waits for it", async () => {
    const { agent: holder } = await bench.agent([{ silentAfter: "…" }]);
    const { agent } = await bench.agent([{ text: "for the patient one" }]);
    const running = holder.run("s", "go");
    await bench.host.advance(10);
    const [hasty, patient] = ["hasty", "patient"].map(() => agent.run("s", "both", { inputId: "both" }));
    await bench.host.advance(10);
    hasty?.stop();
    expect(hasty && (await bench.finished(hasty))).toMatchObject({ outcome: "queued", reason: "user-stop" });
    expect(await bench.store.inbox.pending("s")).toMatchObject([{ runner: { instanceId: expect.any(String) } }]);
    running.stop();
    expect(patient && (await bench.finished(patient))).toMatchObject({ outcome: "answered" });
  });

  it.each([false, true])(
    "by a close that drains begins nothing more, and stops what runs only when closed again (again: %s)",
    async (again) => {
      let answer = (): void => {};
      const told = new Promise<void>((resolve) => {
        answer = resolve;
      });
      const { agent } = await bench.agent([
        async ({ abortSignal }) => {
          await Promise.race([told, new Promise((resolve) => abortSignal?.addEventListener("abort", resolve))]);
          return { text: "to its end" };
        },
      ]);
      const running = agent.run("s", "one");
      await bench.host.advance(10);
      const queued = agent.run("s", "two", { onBusy: "queue" });
      await bench.finished(queued);
      const closing = agent.close({ drain: true });
      await bench.host.advance(3000);
      expect(await bench.store.turns.running("s")).toHaveLength(1);
      const closed = again ? agent.close() : undefined;
      if (!again) answer();
      expect(await bench.finished(running)).toMatchObject(
        again ? { outcome: "interrupted", reason: "shutdown" } : { outcome: "answered", text: "to its end" },
      );
      await bench.host.advance(2000);
      await Promise.all([closing, closed]);
      expect(await bench.store.inbox.read("s", queued.inputId)).toMatchObject({ state: "pending" });
    },
  );

  it("by closing the agent ends what runs as shutdown and leaves what waits to others", async () => {
    const { agent } = await bench.agent([{ silentAfter: "…" }]);
    const running = agent.run("s", "one");
    const waiting = agent.run("s", "two");
    await bench.host.advance(10);
    const closing = agent.close();
    expect(await bench.finished(running)).toMatchObject({ outcome: "interrupted", reason: "shutdown" });
    expect(await bench.finished(waiting)).toMatchObject({ outcome: "queued" });
    await closing;
    const next = await bench.agent([{ text: "2" }, { text: "3" }]);
    expect(await bench.finished(next.agent.run("s", "three"))).toMatchObject({ text: "3" });
    expect(await bench.store.inbox.read("s", waiting.inputId)).toMatchObject({ end: "answered" });
  });
});

describe("a model that stops talking", () => {
  it("ends the turn as stalled within its bound and two polls, and frees the session", async () => {
    const { agent } = await bench.agent([{ silentAfter: "Let me" }, { text: "back" }], {
      liveness: { timeoutMs: 10_000, pollMs: 1000 },
    });
    const turn = agent.run("s", "go");
    await bench.host.advance(9000);
    expect((await bench.store.turns.running("s")).length).toBe(1);
    await bench.host.advance(4000);
    const finished = await bench.finished(turn);
    expect(finished).toMatchObject({
      outcome: "interrupted",
      reason: "stalled",
      text: "Let me",
      detail: expect.stringContaining("No progress"),
    });
    expect((await bench.eventsOf(turn)).map((event) => event.type)).toContain("turn.stalled");
    expect(await bench.finished(agent.run("s", "again"))).toMatchObject({ outcome: "answered" });
  });

  it("is told as stalled in whole milliseconds, as a real clock does not tell them", async () => {
    const liveness = { timeoutMs: 10_000.7, pollMs: 1000 };
    const { agent } = await bench.agent([{ text: "first" }, { silentAfter: "" }], { liveness });
    await bench.finished(agent.run("s", "first"));
    await bench.host.advance(0.3);
    const turn = agent.run("s", "go");
    await bench.finished(turn);
    const stalled = (await bench.eventsOf(turn)).filter((event) => event.type === "turn.stalled");
    expect(stalled.map(({ idleMs }) => Number.isInteger(idleMs))).toEqual([true]);
  });

  it("is stopped by its own bound where that is smaller than the turn's", async () => {
    const { agent, model } = await bench.agent(
      [{ silentAfter: "Hm" }],
      { liveness: { timeoutMs: 600_000, pollMs: 15_000 } },
      [],
      2000,
    );
    expect(model.silenceMs).toBe(2000);
    const turn = agent.run("s", "go");
    await bench.host.advance(4000);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "stalled", text: "Hm" });
    expect(bench.host.clock.monotonicMs()).toBeLessThan(10_000);
  });

  it("rule 7.16: keeps its lease for as long as it lasts where the watchdog is off", async () => {
    const late = async (): Promise<ScriptedStep> => {
      await new Promise<void>((resolve) => void bench.host.timers.after(1_500_000, resolve));
      return { text: "late" };
    };
    const lease = { ttlMs: 60_000, renewEveryMs: 10_000 };
    const { agent } = await bench.agent([late], { liveness: false, lease });
    const turn = agent.run("s", "take your time");
    await bench.host.advance(1_500_000);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "late" });
  });

  it("is left alone while it talks, however long it takes", async () => {
    let controller: ReadableStreamDefaultController | undefined;
    const { agent, model } = await bench.agent([{ text: "unused" }], { liveness: { timeoutMs: 10_000, pollMs: 1000 } });
    model.languageModel.doStream = async () => ({
      stream: new ReadableStream({ start: (one) => void (controller = one) }),
    });
    const turn = agent.run("s", "go");
    await bench.host.advance(10);
    controller?.enqueue({ type: "text-start", id: "t" });
    for (let second = 0; second < 60; second += 6) {
      controller?.enqueue({ type: "text-delta", id: "t", delta: "." });
      await bench.host.advance(6000);
    }
    controller?.enqueue({
      type: "finish",
      usage: { inputTokens: {}, outputTokens: {} },
      finishReason: { unified: "stop", raw: "stop" },
    });
    controller?.close();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: ".".repeat(10) });
  });
});
