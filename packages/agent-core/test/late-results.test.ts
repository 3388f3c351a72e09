import { CodedError } from "@turnkeeper/kernel";
import type { Entry, JsonValue } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

/** A tool that hears no stop and ends when the test says so. */
function deaf(): {
  readonly tool: ReturnType<typeof defineTool<Record<string, never>>>;
  end(result: JsonValue | Error): void;
} {
  let end: (result: JsonValue | Error) => void = () => {
    throw new Error("It did not start.");
  };
  const tool = defineTool<Record<string, never>>({
    name: "deaf",
    description: "Waits.",
    input: z.object({}) as never,
    execute: () =>
      new Promise((resolve, reject) => {
        end = (result) => (result instanceof Error ? reject(result) : resolve(result));
      }),
  });
  return { tool, end: (result) => end(result) };
}

async function lateEntries(): Promise<readonly Entry[]> {
  return (await bench.store.transcript.load("s", { all: true })).entries.filter(({ late }) => late);
}

describe("a call that was left behind", () => {
  it("keeps its one result; what it answers later is stored as late, and no model hears of it", async () => {
    const { tool, end } = deaf();
    const { agent, model } = await bench.agent(
      [{ calls: [{ name: "deaf", input: {} }] }, { text: "Hello again." }],
      {},
      [tool],
    );
    const turn = agent.run("s", "go");
    await bench.host.advance(10);
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
    end("the late answer");
    await bench.host.advance(10);
    expect(await bench.finished(agent.run("s", "and now?"))).toMatchObject({ outcome: "answered" });
    const { entries } = await bench.store.transcript.load("s");
    const results = entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
    expect(results).toEqual([
      expect.objectContaining({ status: "interrupted", output: expect.stringContaining("left behind") }),
    ]);
    expect((await lateEntries()).map(({ body }) => body)).toEqual([
      { role: "tool", callId: results[0]?.callId, name: "deaf", status: "interrupted", output: "the late answer" },
    ]);
    expect(JSON.stringify(model.requests)).not.toContain("the late answer");
  });

  it("that fails later is told so too, with the receipt of its end", async () => {
    const { tool, end } = deaf();
    const { agent } = await bench.agent([{ calls: [{ name: "deaf", input: {} }] }, { text: "Hello." }], {}, [tool]);
    const turn = agent.run("s", "go");
    await bench.host.advance(10);
    turn.stop({ hard: true });
    await bench.finished(turn);
    const steps = [{ step: "detach", processIds: [4711] }];
    end(new CodedError("STUCK", "It would not end.", { context: { receipt: { steps } } }));
    await bench.host.advance(10);
    await bench.finished(agent.run("s", "and now?"));
    expect((await lateEntries()).map(({ body }) => body)).toEqual([
      expect.objectContaining({ status: "interrupted", output: "It would not end.", receipt: { steps } }),
    ]);
  });

  it("that ends within the grace has no late entry", async () => {
    const { tool, end } = deaf();
    const { agent } = await bench.agent([{ calls: [{ name: "deaf", input: {} }] }, { text: "Hello." }], {}, [tool]);
    const turn = agent.run("s", "go");
    await bench.host.advance(10);
    turn.stop();
    await bench.host.advance(100);
    end("just in time");
    await bench.finished(turn);
    await bench.finished(agent.run("s", "and now?"));
    expect(await lateEntries()).toEqual([]);
    const { entries } = await bench.store.transcript.load("s");
    expect(entries.map(({ body }) => body)).toContainEqual(expect.objectContaining({ output: "just in time" }));
  });
});

it("the receipt of a call that was ended is stored with its result, and no model gets it", async () => {
  const receipt = { supported: true, steps: [{ step: "term", groupCount: 1, sweptCount: 0, leftCount: 0 }] };
  const tool = defineTool<Record<string, never>>({
    name: "ended",
    description: "Is ended by its time limit.",
    input: z.object({}) as never,
    execute: () => Promise.reject(new CodedError("COMMAND_TIMED_OUT", "It took too long.", { context: { receipt } })),
  });
  const { agent, model } = await bench.agent([{ calls: [{ name: "ended", input: {} }] }, { text: "Oh." }], {}, [tool]);
  expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered" });
  const { entries } = await bench.store.transcript.load("s");
  expect(entries.map(({ body }) => body)).toContainEqual(
    expect.objectContaining({ role: "tool", status: "error", output: "It took too long.", receipt }),
  );
  expect(JSON.stringify(model.requests)).not.toContain("groupCount");
});
