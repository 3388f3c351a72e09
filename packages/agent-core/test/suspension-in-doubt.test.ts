import { CodedError } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

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
