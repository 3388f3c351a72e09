import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { expect, it } from "vitest";
import { createAgent, readRunningTurns, readSessionState } from "../src/index.ts";
import type { Agent } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";

interface Watched extends AsyncDisposable {
  readonly store: MemoryStore;
  readonly agent: Agent;
  /** A presence of which every holder knows nothing; `meanwhile` happens before the first answer. */
  forgetful(meanwhile?: () => Promise<unknown>): ProcessPresence;
}

/** Session `s`, whose turn waits for its model. */
async function watchedTurn(): Promise<Watched> {
  const store = createMemoryStore({ host: systemHost });
  const presence = await openProcessPresence({ host: systemHost });
  const agent = await createAgent({
    store,
    presence,
    model: scriptedModel([{ silentAfter: "…" }, { silentAfter: "…" }]),
  });
  for await (const event of agent.run("s", "one")) if (event.type === "text.delta") break;
  return {
    store,
    agent,
    forgetful(meanwhile = () => Promise.resolve()) {
      let asked: Promise<unknown> | undefined;
      const probe: ProcessPresence["probe"] = async () => {
        await (asked ??= meanwhile());
        return "unknown-here";
      };
      const statusOf: ProcessPresence["statusOf"] = () => Promise.resolve(undefined);
      return Object.assign(Object.create(presence) as ProcessPresence, { probe, statusOf });
    },
    async [Symbol.asyncDispose]() {
      await agent.close();
      await presence.close();
    },
  };
}

it("a turn that ended while its holder was asked was not forgotten by it", async () => {
  await using watched = await watchedTurn();
  const { store, agent } = watched;
  const ends = async (): Promise<void> => {
    await agent.stop("s", { hard: true });
    while (await store.leases.read("s")) await new Promise((resolve) => setImmediate(resolve));
  };
  const presence = watched.forgetful(ends);
  expect(await readRunningTurns({ store, presence })).toEqual([]);
  for await (const event of agent.run("s", "two")) if (event.type === "text.delta") break;
  const state = await readSessionState({ store, presence: watched.forgetful(ends) }, "s");
  expect([state.turn, state.lease, state.holderPulse]).toEqual([undefined, undefined, undefined]);
});

it("a holder that forgot its turn is told of, where the turn still runs in the books", async () => {
  await using watched = await watchedTurn();
  const { store } = watched;
  const presence = watched.forgetful();
  expect(await readRunningTurns({ store, presence })).toMatchObject([{ pulse: "leaked" }]);
  expect(await readSessionState({ store, presence }, "s")).toMatchObject({ holderPulse: "leaked" });
});
