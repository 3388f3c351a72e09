import { describe, expect, it } from "vitest";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

/** A session that another process holds with a turn that answers once `answer` is called. */
async function heldSession(): Promise<{ answer: () => void; turn: { result: Promise<unknown> } }> {
  let answer = (): void => {};
  const waits = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const holder = await bench.agent([
    async () => {
      await waits;
      return { text: "first" };
    },
    (request) => ({ text: `after: ${JSON.stringify(request.prompt.at(-1)?.content)}` }),
    { text: "third" },
    { text: "fourth" },
  ]);
  const turn = holder.agent.run("s", "hold");
  await bench.host.advance(20);
  return { answer, turn };
}

describe("a busy session", () => {
  it("wait: says at once who holds it, then ever more rarely, and is answered in order", async () => {
    const { answer } = await heldSession();
    const { agent } = await bench.agent([{ text: "mine" }]);
    const turn = agent.run("s", "wait for me");
    await bench.host.advance(8000);
    answer();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "mine" });
    const events = await bench.eventsOf(turn);
    const waiting = events.filter((event) => event.type === "turn.waiting");
    expect(Object.keys(waiting[0]?.holder ?? {}).toSorted()).toEqual(["host", "instanceId", "pid"]);
    expect(waiting[0]?.holder?.pid).toBe(process.pid);
    expect(waiting[0]?.elapsedMs).toBeLessThan(10);
    expect(waiting.map((event) => Math.round((event.elapsedMs ?? 0) / 1000))).toEqual([0, 1, 3, 7]);
    expect(events.map((event) => event.type).indexOf("turn.started")).toBeGreaterThan(
      events.lastIndexOf(waiting.at(-1) as never),
    );
  });

  it("behind the greatest number of inputs a call ends at once and stores nothing, however many are made at once", async () => {
    const { answer } = await heldSession();
    const { agent } = await bench.agent([{ text: "mine" }]);
    expect(() => agent.run("s", "more", { queueLengthMax: 0 })).toThrow(/queueLengthMax: expected a whole number/);
    const options = { onBusy: "queue", queueLengthMax: 2 } as const;
    const turns = Array.from({ length: 5 }, () => agent.run("s", "later", options));
    await bench.host.advance(20);
    const ends = await Promise.all(turns.map(({ result }) => result));
    expect(ends.map(({ outcome }) => outcome).toSorted()).toEqual(["busy", "busy", "busy", "queued", "queued"]);
    const full = { reason: "queue_full", retryable: true, detail: "2 inputs wait on this session; try later." };
    for (const end of ends.filter(({ outcome }) => outcome === "busy")) expect(end).toMatchObject(full);
    expect(await bench.store.inbox.pending("s")).toHaveLength(2);
    answer();
    await bench.host.advance(2000);
  });

  it("wait: gives up after its patience, says so, and leaves nothing that would run later", async () => {
    await heldSession();
    const { agent } = await bench.agent([{ text: "never" }]);
    const turn = agent.run("s", "hurry", { waitMs: 5000 });
    await bench.host.advance(6000);
    const busy = { outcome: "busy", reason: "session_busy", retryable: true };
    expect(await bench.finished(turn)).toMatchObject(busy);
    expect(await bench.store.inbox.read("s", turn.inputId)).toMatchObject({ state: "settled", end: "expired" });
    const again = agent.run("s", "hurry", { waitMs: 5000, inputId: turn.inputId });
    await bench.host.advance(6000);
    expect(await bench.finished(again)).toMatchObject(busy);
  });

  it("wait: tells a patience of less than a second as what it was", async () => {
    await heldSession();
    const { agent } = await bench.agent([]);
    const { detail } = await bench.finished(agent.run("s", "hurry", { waitMs: 500 }));
    expect(detail).toContain("stayed busy for 0.5 s");
  });

  it("rule 7.2: reject stores nothing and says busy", async () => {
    await heldSession();
    const { agent } = await bench.agent([]);
    const turn = agent.run("s", "now or never", { onBusy: "reject" });
    expect(await bench.finished(turn)).toMatchObject({
      outcome: "busy",
      retryable: true,
      detail: expect.stringContaining("held by this process, for another message"),
    });
    expect((await bench.eventsOf(turn)).map((event) => event.type)).toEqual(["turn.finished"]);
    expect(await bench.store.inbox.pending("s")).toEqual([]);
  });

  it("queue: returns at once, and the holder runs it before it rests", async () => {
    const { answer } = await heldSession();
    const { agent } = await bench.agent([]);
    const turn = agent.run("s", "when you can", { onBusy: "queue" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "queued" });
    answer();
    await bench.host.advance(1000);
    expect(await bench.store.inbox.read("s", turn.inputId)).toMatchObject({ state: "settled", end: "answered" });
  });

  it("steer: joins the running turn at its next checkpoint, and is answered by it", async () => {
    const { answer } = await heldSession();
    const { agent } = await bench.agent([]);
    const turn = agent.run("s", "be brief", { onBusy: "steer" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "queued" });
    answer();
    await bench.host.advance(1000);
    const input = await bench.store.inbox.read("s", turn.inputId);
    const records = await bench.store.sessions.records("s");
    expect(records?.turns).toHaveLength(1);
    expect(input).toMatchObject({ state: "settled", end: "answered", turnId: records?.turns[0]?.turnId });
    expect(records?.entries.map(({ body }) => body.role)).toEqual(["user", "assistant", "user", "assistant"]);
  });

  it("interrupt: stops the running turn for the new message and runs it next", async () => {
    const { turn: held } = await heldSession();
    const { agent } = await bench.agent([{ text: "right away" }]);
    const turn = agent.run("s", "stop that", { onBusy: "interrupt" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "right away" });
    expect(await held.result).toMatchObject({ outcome: "interrupted", reason: "user-message" });
  });

  it("INT-2: interrupt leaves the next turn alone when the one that was in the way has ended meanwhile", async () => {
    const first = await bench.agent([{ silentAfter: "…" }]);
    const second = await bench.agent([{ silentAfter: "…" }]);
    const { agent } = await bench.agent([{ text: "at last" }]);
    const inTheWay = first.agent.run("s", "first");
    await bench.host.advance(10);
    const next = second.agent.run("s", "second");
    await bench.host.advance(10);
    const { inbox } = bench.store;
    const offer = inbox.offer.bind(inbox);
    inbox.offer = async (request) => {
      const result = await offer(request);
      inTheWay.stop();
      await new Promise<void>((resolve) => void bench.host.timers.after(2000, resolve));
      return result;
    };
    const turn = agent.run("s", "stop that", { onBusy: "interrupt" });
    await bench.host.advance(5000);
    const [running] = await bench.store.turns.running("s");
    expect(running?.turn.stop).toBeUndefined();
    expect(await bench.store.inbox.read("s", next.inputId)).toMatchObject({ state: "taken" });
    next.stop();
    expect(await bench.finished(next)).toMatchObject({ reason: "user-stop" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
  });

  it("steer and queue on a free session run at once", async () => {
    const { agent } = await bench.agent([{ text: "a" }, { text: "b" }]);
    expect(await bench.finished(agent.run("s", "1", { onBusy: "steer" }))).toMatchObject({
      outcome: "answered",
      text: "a",
    });
    expect(await bench.finished(agent.run("s", "2", { onBusy: "queue" }))).toMatchObject({
      outcome: "answered",
      text: "b",
    });
  });
});

describe("rule 7.3: one input id", () => {
  it("runs once: a second caller is told what the first one was told", async () => {
    const { agent, model } = await bench.agent([{ text: "only once" }]);
    const first = await bench.finished(agent.run("s", "pay", { inputId: "invoice-7" }));
    const other = await bench.agent([]);
    const second = await bench.finished(other.agent.run("s", "pay", { inputId: "invoice-7" }));
    expect(second).toMatchObject({ outcome: first.outcome, text: first.text, usage: first.usage });
    expect(model.requests).toHaveLength(1);
  });

  it("offered twice at the same time runs once for both callers, here and in another process", async () => {
    const { answer } = await heldSession();
    const { agent } = await bench.agent([{ text: "once" }]);
    const other = await bench.agent([]);
    const turns = [
      agent.run("s", "pay", { inputId: "i" }),
      agent.run("s", "pay", { inputId: "i" }),
      other.agent.run("s", "pay", { inputId: "i" }),
    ];
    await bench.host.advance(100);
    answer();
    for (const turn of turns) expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "once" });
  });

  it("with other content is refused, and the first one stands", async () => {
    const { agent } = await bench.agent([{ text: "ok" }]);
    await bench.finished(agent.run("s", "pay 10", { inputId: "i" }));
    expect(await bench.finished(agent.run("s", "pay 99", { inputId: "i" }))).toMatchObject({
      outcome: "failed",
      reason: "input_id_conflict",
    });
  });
});
