import { requestStop, withTurn } from "@turnkeeper/agent-core";
import type { TurnHandle, WithTurnOptions, WithTurnResult } from "@turnkeeper/agent-core";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";

let bench: Bench;
let presence: ProcessPresence;
beforeEach(async () => {
  bench = createBench();
  presence = await openProcessPresence({ host: bench.host });
});
afterEach(async () => {
  await presence.close();
  await bench.close();
  expect(bench.host.pendingTimerCount()).toBe(0);
});

const liveness = { timeoutMs: 10_000, pollMs: 1000 };

function turn<Value>(
  text: string,
  body: (handle: TurnHandle) => Promise<Value>,
  options: WithTurnOptions = {},
): Promise<WithTurnResult<Value>> {
  const { store, host, scheduler } = bench;
  return withTurn({ store, host, scheduler, presence }, "s", text, body, { liveness, ...options });
}

/** Moves time until `work` has settled either way. */
async function settled(work: Promise<unknown>): Promise<void> {
  let isOver = false;
  void work.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  for (let step = 0; !isOver; step++) {
    if (step > 2000) throw new Error("It does not end.");
    await bench.host.advance(50);
  }
}

async function ended<Value>(work: Promise<Value>): Promise<Value> {
  await settled(work);
  return work;
}

const until = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });

const answer = (handle: TurnHandle, text: string): Promise<void> =>
  handle.append([{ key: `${handle.turnId}/answer`, body: { role: "assistant", parts: [{ type: "text", text }] } }]);

describe("any function as the body of a turn", () => {
  it("has its input stored before it runs, and settled with its end", async () => {
    let before: unknown;
    const result = await ended(
      turn(
        "hello",
        async (handle) => {
          before = await bench.store.inbox.read("s", "i");
          await answer(handle, `You said ${handle.input.text}.`);
          return 42;
        },
        { inputId: "i" },
      ),
    );
    expect(result).toEqual({ kind: "answered", value: 42 });
    expect(before).toMatchObject({ state: "taken", text: "hello" });
    expect(await bench.store.inbox.read("s", "i")).toMatchObject({ state: "settled", end: "answered" });
    const { entries } = await bench.store.transcript.load("s");
    expect(entries.map(({ body }) => body.role)).toEqual(["user", "assistant"]);
    expect(await bench.store.leases.read("s")).toBeUndefined();
  });

  it("that throws ends the turn as failed, and what it threw is thrown again once the session is free", async () => {
    const mistake = new Error("a mistake");
    const running = turn("hello", () => Promise.reject(mistake), { inputId: "i" });
    await settled(running);
    await expect(running).rejects.toBe(mistake);
    expect(await bench.store.inbox.read("s", "i")).toMatchObject({ state: "settled", end: "failed" });
    expect(await bench.store.leases.read("s")).toBeUndefined();
  });

  it("one turn runs at a time on a session, in the order of the calls", async () => {
    const events: string[] = [];
    const body = async (handle: TurnHandle): Promise<void> => {
      events.push(`${handle.input.text} begins`);
      await new Promise<void>((resolve) => void bench.host.timers.after(1000, resolve));
      events.push(`${handle.input.text} ends`);
    };
    await ended(Promise.all(["a", "b", "c"].map((text) => turn(text, body))));
    expect(events).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });

  it("runs first for an older input whose process is gone, and answers its own caller with its own value", async () => {
    const gone = { runnerId: "gone", ...presence.identity };
    await bench.store.inbox.offer({ sessionId: "s", inputId: "old", text: "old", onBusy: "wait", runner: gone });
    await bench.store.inbox.abandon("s", "gone");
    const seen: string[] = [];
    const result = await ended(
      turn("new", async (handle) => {
        seen.push(handle.input.text);
        return handle.input.text;
      }),
    );
    expect(seen).toEqual(["old", "new"]);
    expect(result).toEqual({ kind: "answered", value: "new" });
    expect(await bench.store.inbox.read("s", "old")).toMatchObject({ state: "settled", end: "answered" });
  });
});

describe("what stops a turn reaches its body as one signal", () => {
  it("a stop asked for from outside, which is answered at once", async () => {
    const running = turn("hello", (handle) => until(handle.signal));
    await bench.host.advance(100);
    const stop = { hard: false, reason: "user-stop", by: "somebody" } as const;
    expect(await requestStop({ store: bench.store, presence }, "s", stop)).toMatchObject({ kind: "requested" });
    expect(await ended(running)).toMatchObject({
      kind: "ended",
      finished: { outcome: "interrupted", reason: "user-stop" },
    });
  });

  it("silence beyond its bound, unless it was declared", async () => {
    expect(await ended(turn("hello", (handle) => until(handle.signal)))).toMatchObject({
      kind: "ended",
      finished: { outcome: "interrupted", reason: "stalled" },
    });
    const patient = turn("hello", async (handle) => {
      using _wait = handle.declareWait("a slow tool", 60_000);
      await new Promise<void>((resolve) => void bench.host.timers.after(40_000, resolve));
      return "in time";
    });
    expect(await ended(patient)).toEqual({ kind: "answered", value: "in time" });
  });

  it("progress keeps it going, however long it takes", async () => {
    const busy = turn("hello", async (handle) => {
      for (let step = 0; step < 20; step++) {
        await new Promise<void>((resolve) => void bench.host.timers.after(5000, resolve));
        handle.progress("step", String(step));
      }
      return "done";
    });
    expect(await ended(busy)).toEqual({ kind: "answered", value: "done" });
  });

  it("a lost lease: no side effect begins and no write lands", async () => {
    const refused: unknown[] = [];
    const running = turn("hello", async (handle) => {
      const lease = await bench.store.leases.read("s");
      await bench.store.turns.settleForeign({
        sessionId: "s",
        holderId: lease?.holder.holderId ?? "",
        fencingToken: handle.fencingToken,
      });
      await answer(handle, "late").catch((error: unknown) => refused.push(error));
      await until(handle.signal).catch(() => {});
      await handle.beforeSideEffect().catch((error: unknown) => refused.push(error));
    });
    expect(await ended(running)).toMatchObject({
      kind: "ended",
      finished: { outcome: "interrupted", reason: "lease-lost" },
    });
    expect(refused).toMatchObject([{ code: "LEASE_LOST" }, { code: "INTERRUPTED" }]);
    const { entries } = await bench.store.transcript.load("s");
    expect(entries.map(({ body }) => body.role)).not.toContain("assistant");
  });
});

it("rule 7.6: a step that was stored already is acknowledged again, even under a lost lease; another under its key is an error", async () => {
  const answers: unknown[] = [];
  const running = turn("hello", async (handle) => {
    const tell = (text: string): Promise<void> =>
      answer(handle, text).then(
        () => void answers.push("stored"),
        (error: unknown) => void answers.push(error),
      );
    await tell("once");
    await tell("once");
    await tell("twice");
    const lease = await bench.store.leases.read("s");
    const { fencingToken } = handle;
    await bench.store.turns.settleForeign({ sessionId: "s", holderId: lease?.holder.holderId ?? "", fencingToken });
    await tell("once");
  });
  await settled(running);
  expect(answers).toMatchObject(["stored", "stored", { code: "ENTRY_CONFLICT" }, "stored"]);
  const { entries } = await bench.store.transcript.load("s");
  expect(entries.filter(({ body }) => body.role === "assistant")).toHaveLength(1);
});

it("a body that asks for a turn on its own session is refused at once", async () => {
  const outer = turn("hello", () => turn("again", async () => "inner"));
  await settled(outer);
  await expect(outer).rejects.toMatchObject({ code: "TURN_REENTRANT" });
});

it("a body that works on in spite of a soft stop is stopped hard after a minute, and left behind soon after", async () => {
  let isWanted = true;
  const running = turn("go", async (handle) => {
    while (isWanted) {
      handle.progress("loop");
      await new Promise<void>((resolve) => void bench.host.timers.after(1000, resolve));
    }
  });
  await bench.host.advance(1000);
  const stop = { hard: false, reason: "user-stop", by: "test" } as const;
  expect(await requestStop({ store: bench.store, presence }, "s", stop)).toMatchObject({ kind: "requested" });
  await bench.host.advance(60_000);
  expect(await bench.store.turns.running("s")).toHaveLength(1);
  await bench.host.advance(11_000);
  expect(await bench.store.turns.running("s")).toEqual([]);
  expect(await ended(running)).toMatchObject({
    finished: {
      outcome: "interrupted",
      reason: "user-stop",
      by: "test",
      detail: "The turn was asked to stop by test, did not end within 60 s, and was stopped hard.",
    },
  });
  isWanted = false;
  await bench.host.advance(1000);
});
