import { CodedError } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { notingTool } from "./noting-tool.ts";

let bench: Bench;
benchOfEachTest((fresh) => (bench = fresh));

/** A store that suspends a turn, and whose answers to that are lost, however often it is asked. */
function withoutAnswers(store: StateStore): StateStore {
  const turns = new Proxy(store.turns, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        const answer: unknown = await Reflect.apply(member, target, args);
        if (name === "suspend") throw new CodedError("STORE_IO", "The connection was lost before the answer came.");
        return answer;
      };
    },
  });
  return { ...store, turns };
}

const danger = notingTool(() => {})("danger", true);

/** Its first suspension commits, and `meanwhile` happens before that is asked about again. */
function answeringLate(store: StateStore, meanwhile: () => Promise<void>): StateStore {
  let count = 0;
  const turns = new Proxy(store.turns, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        const answer: unknown = await Reflect.apply(member, target, args);
        if (name !== "suspend" || count++ > 0) return answer;
        await meanwhile();
        throw new CodedError("STORE_IO", "The connection was lost before the answer came.");
      };
    },
  });
  return { ...store, turns };
}

describe("a suspension whose answer was lost, and that is asked about again", () => {
  const first = { calls: [{ id: "a", name: "danger", input: { what: "a" } }] };

  it("rule 7.19: once the turn goes on in another process: its caller follows it to its end there", async () => {
    const other = await bench.agent([{ text: "all done" }], {}, [danger]);
    const store = answeringLate(bench.store, async () => {
      await other.agent.answer("s", "a", { decision: "allow", by: "me" });
      const isTaken = async (): Promise<boolean> => (await bench.store.leases.read("s")) !== undefined;
      for (let look = 0; look < 1000 && !(await isTaken()); look++);
      expect(await isTaken()).toBe(true);
    });
    const { agent } = await bench.agent([first], {}, [danger], undefined, store);
    const call = agent.run("s", "go", { inputId: "one", approval: "ask" });
    expect(await bench.finished(call)).toMatchObject({ outcome: "answered", text: "all done" });
    expect((await bench.store.sessions.records("s"))?.turns).toMatchObject([{ state: "ended", outcome: "answered" }]);
  });

  it.each([true, false])(
    "rule 7.19: once the turn was stopped, hard: %s, says so and runs what waits",
    async (hard) => {
      const store = answeringLate(bench.store, async () => {
        const runner = { runnerId: "another", ...(await openProcessPresence({ host: bench.host })).identity };
        await bench.store.inbox.offer({ sessionId: "s", inputId: "two", text: "and?", onBusy: "queue", runner });
        await bench.store.turns.requestStop("s", { hard, reason: "user-stop", by: "somebody" });
      });
      const { agent } = await bench.agent([first, { text: "Next." }], {}, [danger], undefined, store);
      const call = agent.run("s", "go", { inputId: "one", approval: "ask" });
      expect(await bench.finished(call)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
      await bench.host.advance(1000);
      expect(await bench.store.inbox.read("s", "two")).toMatchObject({ state: "settled", end: "answered" });
    },
  );
});

it("rule 7.19: a turn that was suspended, though its process could not know it, runs what is allowed then", async () => {
  const ran: string[] = [];
  const danger = defineTool({
    name: "danger",
    description: "Notes that it ran.",
    input: z.object({}),
    needsApproval: true,
    execute: async () => {
      ran.push("danger");
      return "done";
    },
  });
  const { agent, model } = await bench.agent(
    [{ calls: [{ id: "a", name: "danger", input: {} }] }, { text: "all done" }],
    {},
    [danger],
    undefined,
    withoutAnswers(bench.store),
  );
  const finished = await bench.finished(agent.run("s", "go", { inputId: "one", approval: "ask" }));
  expect(finished).toMatchObject({ outcome: "failed", reason: "STORE_IO" });
  expect((await bench.store.turns.running("s"))[0]?.turn.state).toBe("suspended");

  await agent.answer("s", "a", { decision: "allow", by: "me" });
  await bench.host.advance(1000);
  await agent.idle();
  expect(ran).toEqual(["danger"]);
  expect(model.requests).toHaveLength(2);
  const records = await bench.store.sessions.records("s");
  if (!records) throw new Error("There is no session.");
  expect(verifyRecords(records)).toEqual([]);
  expect(records.turns).toMatchObject([{ state: "ended", outcome: "answered" }]);
  const results = records.entries.flatMap(({ body, late }) => (body.role === "tool" ? [[body.status, late]] : []));
  expect(results).toEqual([
    ["interrupted", true],
    ["ok", false],
  ]);
});
