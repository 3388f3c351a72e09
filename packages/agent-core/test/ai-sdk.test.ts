import { readFileSync } from "node:fs";
import { requestStop, withTurn } from "@turnkeeper/agent-core";
import type { TurnHandle, WithTurnResult } from "@turnkeeper/agent-core";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import { durableSteps, messagesOf } from "./ai-sdk-steps.ts";
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
});

/** What the weather tool does; a test may hold it up. */
let lookUp = async (city: string, _signal: AbortSignal | undefined): Promise<string> => `sunny in ${city}`;
afterEach(() => void (lookUp = async (city) => `sunny in ${city}`));

/** The AI SDK's own loop as the body of a turn. */
async function agent(turn: TurnHandle, model: ReturnType<typeof scriptedModel>): Promise<string> {
  const steps = durableSteps(turn);
  const weather = tool({
    description: "Tells the weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }, { toolCallId: callId, abortSignal }) =>
      steps.call({ name: "weather", callId, boundMs: 60_000 }, () => lookUp(city, abortSignal)),
  });
  const result = streamText({
    model: wrapLanguageModel({ model: model.languageModel, middleware: steps.middleware }),
    messages: messagesOf(await turn.load()),
    tools: { weather },
    stopWhen: stepCountIs(10),
    maxRetries: 0,
    abortSignal: turn.signal,
    onError: () => {},
  });
  let answer = "";
  try {
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") answer += part.text;
      if (part.type === "error") throw part.error;
    }
  } finally {
    if (turn.signal.aborted) await steps.keepPartial();
  }
  turn.signal.throwIfAborted();
  return answer;
}

function ask(text: string, script: readonly ScriptedStep[]): Promise<WithTurnResult<string>> {
  const { store, host, scheduler } = bench;
  const model = scriptedModel(script);
  return withTurn({ store, host, scheduler, presence }, "s", text, (turn) => agent(turn, model), {
    liveness: { timeoutMs: 30_000, pollMs: 1000 },
  });
}

async function ended<Value>(work: Promise<Value>): Promise<Value> {
  let isOver = false;
  void work.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  for (let step = 0; !isOver; step++) {
    if (step > 2000) throw new Error("It does not end.");
    await bench.host.advance(50);
  }
  return work;
}

async function stored(): Promise<unknown[]> {
  const { entries } = await bench.store.transcript.load("s");
  return entries.map(({ body }) => {
    switch (body.role) {
      case "assistant":
        return [
          ...body.parts.map((part) => ("text" in part ? part.text : part.callId)),
          ...(body.partial ? ["…"] : []),
        ];
      case "tool":
        return { [body.callId]: body.status };
      default:
        return body.text;
    }
  });
}

const twoCalls: ScriptedStep = {
  text: "Let me see.",
  calls: [
    { id: "a", name: "weather", input: { city: "Rome" } },
    { id: "b", name: "weather", input: { city: "Oslo" } },
  ],
};

describe("streamText inside a turn", () => {
  it("is stored step by step, and the next turn goes on from there", async () => {
    expect(await ended(ask("Where is it warm?", [twoCalls, { text: "In Rome." }]))).toEqual({
      kind: "answered",
      value: "Let me see.In Rome.",
    });
    expect(await stored()).toEqual([
      "Where is it warm?",
      ["Let me see.", "a", "b"],
      { a: "ok" },
      { b: "ok" },
      ["In Rome."],
    ]);
    let prompt: unknown;
    const next: ScriptedStep = (request) => {
      prompt = request.prompt.map(({ role }) => role);
      return { text: "Yes." };
    };
    expect((await ended(ask("Sure?", [next]))).kind).toBe("answered");
    expect(prompt).toEqual(["user", "assistant", "tool", "assistant", "user"]);
  });

  it("rule 7.4: stores a step's calls before the first of their tools starts, and each result before the model hears of it", async () => {
    const seen: unknown[] = [];
    lookUp = async (city) => {
      seen.push((await stored()).at(-1));
      return city;
    };
    const answer: ScriptedStep = async () => {
      seen.push((await stored()).slice(-2));
      return { text: "Done." };
    };
    await ended(ask("go", [twoCalls, answer]));
    expect(seen.slice(0, 2).every((last) => JSON.stringify(last).includes("a"))).toBe(true);
    expect(seen[0]).toEqual(["Let me see.", "a", "b"]);
    expect(seen.at(-1)).toEqual([{ a: "ok" }, { b: "ok" }]);
  });

  it("a call whose arguments do not fit, and one that fails, have their results in order too", async () => {
    lookUp = (city) => Promise.reject(new Error(`no such city: ${city}`));
    const calls: ScriptedStep = {
      calls: [
        { id: "a", name: "weather", input: { town: "Rome" } },
        { id: "b", name: "weather", input: "{no json" },
        { id: "c", name: "weather", input: { city: "Atlantis" } },
      ],
    };
    expect((await ended(ask("go", [calls, { text: "Hm." }]))).kind).toBe("answered");
    const [, step, ...rest] = await stored();
    expect(step).toEqual(["a", "b", "c"]);
    expect(rest.slice(0, 3)).toEqual(expect.arrayContaining([{ a: "error" }, { b: "error" }, { c: "error" }]));
    expect(rest.at(-1)).toEqual(["Hm."]);
  });

  it("a stop from outside ends it in the middle of a word, keeps what had come, and leaves the session free", async () => {
    const running = ask("Tell me everything.", [{ silentAfter: "First of all" }]);
    await bench.host.advance(1000);
    const stop = { hard: false, reason: "user-stop", by: "test" } as const;
    expect((await requestStop({ store: bench.store, presence }, "s", stop)).kind).toBe("requested");
    const result = await ended(running);
    expect(result).toMatchObject({ kind: "ended", finished: { outcome: "interrupted", reason: "user-stop" } });
    expect((await stored()).slice(0, 2)).toEqual(["Tell me everything.", ["First of all", "…"]]);
    expect(await bench.store.leases.read("s")).toBeUndefined();
    expect((await ended(ask("And now?", [{ text: "Hello." }]))).kind).toBe("answered");
  });

  it("after a stop no further tool starts, and every call has its one result", async () => {
    const started: string[] = [];
    lookUp = (city, signal) => {
      started.push(city);
      return new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
      });
    };
    const running = ask("go", [{ calls: [{ id: "a", name: "weather", input: { city: "Rome" } }] }, twoCalls]);
    await bench.host.advance(1000);
    await requestStop({ store: bench.store, presence }, "s", { hard: true, reason: "user-stop", by: "test" });
    expect(await ended(running)).toMatchObject({ kind: "ended", finished: { outcome: "interrupted" } });
    expect(started).toEqual(["Rome"]);
    const results = (await stored()).filter((one) => typeof one === "object" && one !== null && "a" in one);
    expect(results).toHaveLength(1);
  });

  it("a model that goes silent is a stalled turn, not one that runs for ever", async () => {
    expect(await ended(ask("go", [{ silentAfter: "Well" }]))).toMatchObject({
      kind: "ended",
      finished: { outcome: "interrupted", reason: "stalled" },
    });
  });
});

it("the page about it shows the code that is tested here", () => {
  const page = readFileSync(new URL("../docs/ai-sdk.md", import.meta.url), "utf8");
  const code = readFileSync(new URL("ai-sdk-steps.ts", import.meta.url), "utf8");
  const body = code.slice(code.indexOf("/**")).replaceAll(/^export /gm, "");
  expect(page).toContain(body.trim());
});
