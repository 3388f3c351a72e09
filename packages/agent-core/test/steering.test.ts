import { CodedError } from "@turnkeeper/kernel";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { Agent } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { failingStore } from "./failing-store.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

const steer = (agent: Agent, text: string, redirect = false): Promise<unknown> =>
  agent.run("s", text, { inputId: text.replaceAll(" ", "-"), onBusy: "steer", redirect }).result;

async function inputEnd(inputId: string): Promise<string | undefined> {
  const input = await bench.store.inbox.read("s", inputId);
  return input?.state === "settled" ? input.end : input?.state;
}

describe("a steer", () => {
  it("is told of as delivered when the request that carries it leaves", async () => {
    const slow = defineTool({
      name: "slow",
      description: "Takes a while.",
      input: z.object({}),
      execute: () => new Promise((resolve) => void bench.host.timers.after(100, () => resolve("slow"))),
    });
    const steps = [{ calls: [{ name: "slow", input: {} }] }, { text: "yes" }];
    const { agent, model } = await bench.agent(steps, {}, [slow]);
    const turn = agent.run("s", "go");
    await bench.host.advance(20);
    void steer(agent, "be brief");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "yes" });
    const delivered = (await bench.eventsOf(turn)).filter(({ type }) => type === "steer.delivered");
    expect(delivered).toMatchObject([{ inputId: "be-brief" }]);
    expect(JSON.stringify(model.requests[1]?.prompt.at(-1))).toContain("be brief");
    expect(await inputEnd("be-brief")).toBe("answered");
  });

  it("that was taken and came into no request is said to be unseen, and does not end as answered", async () => {
    const { agent } = await bench.agent([
      async () => {
        await steer(agent, "be brief");
        return { text: "first" };
      },
      { text: "never asked" },
    ]);
    const { inbox } = bench.store;
    const takeSteers = inbox.takeSteers.bind(inbox);
    inbox.takeSteers = async (grant, turnId) => {
      const taken = await takeSteers(grant, turnId);
      if (taken.kind === "taken" && taken.inputs.length > 0) turn.stop();
      return taken;
    };
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({
      outcome: "interrupted",
      detail: expect.stringContaining("was not seen by the model"),
    });
    expect((await bench.eventsOf(turn)).map(({ type }) => type)).not.toContain("steer.delivered");
    expect(await inputEnd("be-brief")).toBe("interrupted");
  });

  it("that comes with the last answer the turn may give becomes a turn of its own, and the answer stands", async () => {
    const { agent } = await bench.agent(
      [
        async () => {
          await steer(agent, "one more");
          return { text: "the answer" };
        },
        { text: "more" },
      ],
      { maxIterations: 1 },
    );
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "the answer" });
    await bench.host.advance(2000);
    expect(await inputEnd("one-more")).toBe("answered");
  });

  it("that is taken back while the answer is written does not make the model go on by itself", async () => {
    const { agent, model } = await bench.agent([
      async () => {
        await steer(agent, "never mind");
        return { text: "the answer" };
      },
    ]);
    const append = bench.store.transcript.append.bind(bench.store.transcript);
    bench.store.transcript.append = async (request) => {
      const result = await append(request);
      await bench.store.inbox.withdraw("s", "never-mind", "cancelled");
      return result;
    };
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "the answer" });
    expect(model.requests).toHaveLength(1);
    expect(await inputEnd("never-mind")).toBe("cancelled");
  });

  it("that a failing store may or may not have given to the turn is neither answered nor lost", async () => {
    const store = failingStore(bench.store);
    const { agent } = await bench.agent(
      [
        async () => {
          await steer(agent, "be brief");
          const take = bench.store.inbox.takeSteers.bind(bench.store.inbox);
          bench.store.inbox.takeSteers = async (grant, turnId) => {
            await take(grant, turnId);
            throw new CodedError("STORE_IO", "The commit may stand.");
          };
          return { text: "first" };
        },
        { text: "never asked" },
      ],
      {},
      [],
      undefined,
      store,
    );
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "failed", reason: "STORE_IO" });
    expect(await inputEnd("be-brief")).toBe("failed");
  });
});

describe("a redirect", () => {
  it("cuts the model request short, keeps what had come as partial, and the turn goes on with it", async () => {
    const { agent, model } = await bench.agent([{ silentAfter: "Once upon a time" }, { text: "In short: no." }]);
    const turn = agent.run("s", "tell me");
    await bench.host.advance(20);
    void steer(agent, "be brief", true);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "In short: no." });
    const { entries } = await bench.store.transcript.load("s");
    expect(entries.map(({ body }) => body)).toMatchObject([
      { role: "user", text: "tell me" },
      { role: "assistant", partial: true, parts: [{ type: "text", text: "Once upon a time" }] },
      { role: "user", text: "be brief" },
      { role: "assistant", parts: [{ type: "text", text: "In short: no." }] },
    ]);
    expect(model.requests[1]?.prompt.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(await inputEnd("be-brief")).toBe("answered");
  });

  it("touches no tool: while tools run it is a steer", async () => {
    let wasStopped = false;
    const slow = defineTool({
      name: "slow",
      description: "Takes a while.",
      input: z.object({}),
      execute: (_input, { signal }) => {
        signal.addEventListener("abort", () => (wasStopped = true), { once: true });
        return new Promise((resolve) => void bench.host.timers.after(500, () => resolve("slow")));
      },
    });
    const { agent } = await bench.agent([{ calls: [{ name: "slow", input: {} }] }, { text: "brief" }], {}, [slow]);
    const turn = agent.run("s", "go");
    await bench.host.advance(20);
    void steer(agent, "be brief", true);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "brief" });
    expect(wasStopped).toBe(false);
    const { entries } = await bench.store.transcript.load("s");
    expect(entries.map(({ body }) => (body.role === "tool" ? body.status : body.role))).toEqual([
      "user",
      "assistant",
      "ok",
      "user",
      "assistant",
    ]);
  });

  it("that comes with a stop is stopped with the turn, and its message, which no turn had taken, gets its own", async () => {
    const { agent } = await bench.agent([{ silentAfter: "Once" }, { text: "brief" }]);
    const turn = agent.run("s", "tell me");
    await bench.host.advance(20);
    void steer(agent, "be brief", true);
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop", text: "Once" });
    await bench.host.advance(2000);
    expect(await inputEnd("be-brief")).toBe("answered");
  });

  it("of a session that nobody runs is a turn of its own", async () => {
    const { agent } = await bench.agent([{ text: "brief" }]);
    expect(await bench.finished(agent.run("s", "be brief", { onBusy: "steer", redirect: true }))).toMatchObject({
      outcome: "answered",
      text: "brief",
    });
  });
});
