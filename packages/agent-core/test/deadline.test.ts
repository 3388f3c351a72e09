import { expect, it } from "vitest";
import { withTurn } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

it("a turn that has not ended by its deadline is stopped hard, keeps what came, and frees the session", async () => {
  const { agent } = await bench.agent([{ silentAfter: "half an ans" }, { text: "next" }]);
  const turn = agent.run("s", "take your time", { deadlineMs: 2000 });
  await bench.host.advance(1900);
  expect(await bench.store.turns.running("s")).toHaveLength(1);
  await bench.host.advance(200);
  expect(await bench.finished(turn)).toMatchObject({
    outcome: "interrupted",
    reason: "deadline",
    text: "half an ans",
    detail: expect.stringContaining("within 2 s"),
  });
  const records = await bench.store.sessions.records("s");
  expect(records?.turns.at(-1)).toMatchObject({ outcome: "interrupted", reason: "deadline" });
  expect(await bench.finished(agent.run("s", "again"))).toMatchObject({ outcome: "answered", text: "next" });
});

it("the deadline counts from the turn's beginning, not while its input waits", async () => {
  const { agent: holder } = await bench.agent([{ silentAfter: "…" }]);
  const inTheWay = holder.run("s", "first");
  await bench.host.advance(10);
  const { agent } = await bench.agent([{ text: "in time" }]);
  const turn = agent.run("s", "second", { deadlineMs: 1000 });
  await bench.host.advance(5000);
  inTheWay.stop();
  await bench.finished(inTheWay);
  expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "in time" });
});

it("of several callers of one input the most impatient one counts", async () => {
  const { agent: holder } = await bench.agent([{ silentAfter: "…" }]);
  const inTheWay = holder.run("s", "first");
  await bench.host.advance(10);
  const { agent } = await bench.agent([{ silentAfter: "…" }]);
  const calls = [3000, 1000, undefined].map((deadlineMs) =>
    agent.run("s", "pay", { inputId: "pay", ...(deadlineMs === undefined ? {} : { deadlineMs }) }),
  );
  await bench.host.advance(10);
  inTheWay.stop();
  await bench.finished(inTheWay);
  const startedMs = bench.host.clock.monotonicMs();
  for (const call of calls) expect(await bench.finished(call)).toMatchObject({ reason: "deadline" });
  expect(bench.host.clock.monotonicMs() - startedMs).toBeLessThan(2000);
});

it("withTurn takes one too, and the body's signal says so", async () => {
  const { store, host, scheduler } = bench;
  let reason: unknown;
  const running = withTurn(
    { store, host, scheduler },
    "s",
    "hello",
    ({ signal }) =>
      new Promise<never>((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          ({ reason } = signal);
          reject(reason as Error);
        });
      }),
    { deadlineMs: 500 },
  );
  await host.advance(2000);
  expect(await running).toMatchObject({ kind: "ended", finished: { outcome: "interrupted", reason: "deadline" } });
  expect(reason).toMatchObject({ code: "INTERRUPTED" });
});

it.each([
  ["deadlineMs", 0],
  ["deadlineMs", Number.POSITIVE_INFINITY],
  ["waitMs", Number.NaN],
  ["waitMs", -1],
])("a run with %s %s is refused, and nothing is stored", async (option, value) => {
  const { agent } = await bench.agent([]);
  let refusal: unknown;
  try {
    agent.run("s", "hello", { [option]: value });
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toMatchObject({ code: "OPTION_INVALID", context: { option } });
  expect((await bench.store.sessions.list()).sessions).toEqual([]);
});
