import type { EndRequest } from "@turnkeeper/state-store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(async () => {
  await bench.close();
});

async function stateOf(inputId: string): Promise<string | undefined> {
  return (await bench.store.inbox.read("s", inputId))?.state;
}

describe("rule 7.1: an input is marked as taken before it can have an effect", () => {
  it("the turn's own before its first model call, in the transaction of the grant", async () => {
    const seen: unknown[] = [];
    const { agent } = await bench.agent([
      async () => {
        const [running] = await bench.store.turns.running("s");
        seen.push(await stateOf("i"), running?.turn.fencingToken, running?.lease?.fencingToken);
        return { text: "ok" };
      },
    ]);
    await bench.finished(agent.run("s", "hello", { inputId: "i" }));
    expect(seen).toEqual(["taken", 1, 1]);
  });

  it("a steer before the request that carries it, and nobody else runs it", async () => {
    const seen: unknown[] = [];
    const other = await bench.agent([{ text: "never asked" }]);
    const { agent } = await bench.agent([
      async () => {
        const steer = other.agent.run("s", "be brief", { inputId: "steer", onBusy: "steer" });
        await steer.result;
        seen.push(await stateOf("steer"));
        return { text: "first" };
      },
      async (request) => {
        seen.push(await stateOf("steer"), JSON.stringify(request.prompt.at(-1)).includes("be brief"));
        return { text: "brief" };
      },
    ]);
    expect(await bench.finished(agent.run("s", "hello"))).toMatchObject({ outcome: "answered" });
    expect(seen).toEqual(["pending", "taken", true]);
    expect(other.model.requests).toEqual([]);
  });
});

describe("rule 7.2: only what was withdrawn ends as cancelled", () => {
  it("a hard stop that finds its input taken stops the turn that has it", async () => {
    const { leases } = bench.store;
    const acquire = leases.acquire.bind(leases);
    // The stop is on its way to the store while the grant takes the input.
    leases.acquire = async (request) => {
      const result = await acquire(request);
      if (result.kind === "granted") waiting.stop({ hard: true });
      return result;
    };
    const { agent, model } = await bench.agent([{ text: "never asked" }]);
    const waiting = agent.run("s", "next", { inputId: "next" });
    expect(await bench.finished(waiting)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(await bench.store.inbox.read("s", "next")).toMatchObject({ state: "settled", end: "interrupted" });
    expect(model.requests).toEqual([]);
  });
});

describe("rule 7.11: a steer that lands while its turn ends is not stranded", () => {
  it.each(["before", "after"] as const)("when it is stored just %s the end is committed", async (when) => {
    const other = await bench.agent([{ text: "steered by another" }]);
    let steer: Promise<unknown> | undefined;
    const offerSteer = async (): Promise<void> => {
      if (steer) return;
      steer = other.agent.run("s", "one more thing", { inputId: "steer", onBusy: "steer" }).result;
      while ((await stateOf("steer")) === undefined) await bench.host.settle();
    };
    const { turns } = bench.store;
    const end = turns.end.bind(turns);
    turns.end = async (request: EndRequest) => {
      if (when === "before") await offerSteer();
      const result = await end(request);
      if (when === "after") await offerSteer();
      return result;
    };
    const { agent } = await bench.agent([{ text: "first" }, { text: "steered" }]);
    expect(await bench.finished(agent.run("s", "hello"))).toMatchObject({ outcome: "answered", text: "first" });
    await bench.host.advance(2000);
    expect(steer).toBeDefined();
    expect(await bench.store.inbox.read("s", "steer")).toMatchObject({ state: "settled", end: "answered" });
  });
});
