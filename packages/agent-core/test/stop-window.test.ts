import { describe, expect, it } from "vitest";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

/** From now on the answer to a grant is under way for a second; the grant itself stands at once. */
function delayGrants(): void {
  const { leases } = bench.store;
  const acquire = leases.acquire.bind(leases);
  leases.acquire = async (request) => {
    const result = await acquire(request);
    if (result.kind === "granted") await new Promise<void>((resolve) => void bench.host.timers.after(1000, resolve));
    return result;
  };
}

const interrupted = { outcome: "interrupted", reason: "user-stop" };

it("a grant that began no turn is given back, and its call told what became of the input", async () => {
  const { leases } = bench.store;
  const acquire = leases.acquire.bind(leases);
  // As of a store that forgets to say what the turn took.
  leases.acquire = async (request) => {
    const { input: _input, ...result } = (await acquire(request)) as Awaited<ReturnType<typeof acquire>> & {
      readonly input?: unknown;
    };
    leases.acquire = acquire;
    return result as Awaited<ReturnType<typeof acquire>>;
  };
  const { agent, model } = await bench.agent([{ text: "next" }]);
  expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "interrupted", reason: "crashed" });
  expect(model.requests).toEqual([]);
  expect(await leases.read("s")).toBeUndefined();
  expect(await bench.finished(agent.run("s", "again"))).toMatchObject({ outcome: "answered", text: "next" });
});

describe("a stop asked before it is known who runs the call", () => {
  it("soft, in the same breath as the run, reaches the turn that is granted: nothing of it begins", async () => {
    const { agent, model } = await bench.agent([{ text: "never asked" }]);
    const turn = agent.run("s", "go");
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject(interrupted);
    expect(model.requests).toEqual([]);
    expect(await bench.store.inbox.read("s", turn.inputId)).toMatchObject({ state: "settled", end: "interrupted" });
  });

  it("hard, in the same breath as the run, cancels the input that no turn has yet", async () => {
    const { agent, model } = await bench.agent([{ text: "never asked" }]);
    const turn = agent.run("s", "go");
    turn.stop({ hard: true });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "cancelled", reason: "user-stop" });
    await bench.host.advance(2000);
    expect(model.requests).toEqual([]);
    expect(await bench.store.inbox.read("s", turn.inputId)).toMatchObject({ state: "settled", end: "cancelled" });
  });

  it.each([true, false])(
    "while the grant is on its way reaches the turn that has the input (hard: %s)",
    async (hard) => {
      delayGrants();
      const { agent, model } = await bench.agent([{ text: "never asked" }]);
      const turn = agent.run("s", "go");
      await bench.host.advance(500);
      turn.stop({ hard });
      expect(await bench.finished(turn)).toMatchObject(interrupted);
      expect(model.requests).toEqual([]);
      expect(await bench.store.inbox.read("s", turn.inputId)).toMatchObject({ state: "settled", end: "interrupted" });
    },
  );

  it.each([true, false])("of a call that waited, while its grant is on its way, too (hard: %s)", async (hard) => {
    const holder = await bench.agent([{ silentAfter: "…" }]);
    const waiter = await bench.agent([{ text: "never asked" }]);
    const running = holder.agent.run("s", "hold");
    await bench.host.advance(10);
    const turn = waiter.agent.run("s", "next");
    await bench.host.advance(100);
    delayGrants();
    running.stop();
    await bench.finished(running);
    await bench.host.advance(100);
    expect(await bench.store.inbox.read("s", turn.inputId)).toMatchObject({ state: "taken" });
    turn.stop({ hard });
    expect(await bench.finished(turn)).toMatchObject(interrupted);
    expect(waiter.model.requests).toEqual([]);
  });
});

describe("a stop of one of two calls with the same input id in one process", () => {
  it.each([true, false])("leaves the input to the other (hard: %s)", async (hard) => {
    const holder = await bench.agent([{ silentAfter: "…" }]);
    const { agent } = await bench.agent([{ text: "for the other" }]);
    const running = holder.agent.run("s", "hold");
    await bench.host.advance(10);
    const [one, other] = [agent.run("s", "pay", { inputId: "i" }), agent.run("s", "pay", { inputId: "i" })];
    await bench.host.advance(10);
    one.stop({ hard });
    expect(await bench.finished(one)).toMatchObject({ outcome: "queued", reason: "user-stop" });
    running.stop();
    expect(await bench.finished(other)).toMatchObject({ outcome: "answered", text: "for the other" });
  });

  it("cancels it when the other has stopped too", async () => {
    const holder = await bench.agent([{ silentAfter: "…" }]);
    const { agent } = await bench.agent([]);
    const running = holder.agent.run("s", "hold");
    await bench.host.advance(10);
    const calls = [agent.run("s", "pay", { inputId: "i" }), agent.run("s", "pay", { inputId: "i" })];
    await bench.host.advance(10);
    for (const call of calls) call.stop({ hard: true });
    for (const call of calls) expect(await bench.finished(call)).toMatchObject({ outcome: "cancelled" });
    expect(await bench.store.inbox.pending("s")).toEqual([]);
    running.stop();
    await bench.finished(running);
  });

  it("and the patience of one does not end the other's", async () => {
    const holder = await bench.agent([{ silentAfter: "…" }]);
    const { agent } = await bench.agent([{ text: "in the end" }]);
    const running = holder.agent.run("s", "hold");
    await bench.host.advance(10);
    const hasty = agent.run("s", "pay", { inputId: "i", waitMs: 1000 });
    const patient = agent.run("s", "pay", { inputId: "i" });
    await bench.host.advance(2000);
    expect(await bench.finished(hasty)).toMatchObject({ outcome: "busy" });
    running.stop();
    expect(await bench.finished(patient)).toMatchObject({ outcome: "answered" });
  });
});

it("a second call on a session that another process holds says at once that it waits", async () => {
  const holder = await bench.agent([{ silentAfter: "…" }]);
  const { agent } = await bench.agent([]);
  const running = holder.agent.run("s", "hold");
  await bench.host.advance(10);
  const first = agent.run("s", "one");
  await bench.host.advance(1000);
  const second = agent.run("s", "two");
  await bench.host.advance(10);
  const calls = [first, second];
  for (const call of calls) call.stop({ hard: true });
  for (const call of calls) {
    expect(await bench.finished(call)).toMatchObject({ outcome: "cancelled" });
    expect((await bench.eventsOf(call)).map(({ type }) => type)).toContain("turn.waiting");
  }
  running.stop();
  await bench.finished(running);
});

describe("closing the agent", () => {
  it("while the offer is on its way starts nothing: the input is stored, and left to others", async () => {
    const { agent, model } = await bench.agent([{ text: "never asked" }]);
    const turn = agent.run("s", "go");
    const closing = agent.close();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "queued", reason: "shutdown" });
    await closing;
    expect(model.requests).toEqual([]);
    const [pending] = await bench.store.inbox.pending("s");
    expect(pending).toMatchObject({ inputId: turn.inputId });
    expect(pending?.runner).toBeUndefined();
    const next = await bench.agent([{ text: "1" }, { text: "2" }]);
    expect(await bench.finished(next.agent.run("s", "and this"))).toMatchObject({ text: "2" });
  });

  it("while a grant is on its way ends its turn as shutdown before anything of it begins", async () => {
    delayGrants();
    const { agent, model } = await bench.agent([{ text: "never asked" }]);
    const turn = agent.run("s", "go");
    await bench.host.advance(500);
    const closing = agent.close();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "shutdown" });
    await closing;
    expect(model.requests).toEqual([]);
    expect(await bench.store.leases.read("s")).toBeUndefined();
  });

  it("twice is one closing: both wait for its end", async () => {
    const { agent } = await bench.agent([{ silentAfter: "…" }]);
    const turn = agent.run("s", "go");
    await bench.host.advance(10);
    void agent.close();
    const closing = agent.close();
    let isClosed = false;
    void closing.then(() => (isClosed = true));
    await Promise.resolve();
    expect(isClosed).toBe(false);
    expect(await bench.finished(turn)).toMatchObject({ reason: "shutdown" });
    await closing;
  });
});
