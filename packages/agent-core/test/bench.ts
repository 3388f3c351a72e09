import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore, StateStore } from "@turnkeeper/state-store";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { createAgent } from "../src/index.ts";
import type { Agent, AgentOptions, AnyTool, ApprovalPolicy, Turn, TurnEvent, TurnFinished } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedModel, ScriptedStep } from "../src/testing/index.ts";

/** One virtual machine with a store, on which agents run as if in processes of their own. */
export interface Bench {
  readonly host: VirtualHost;
  readonly store: MemoryStore;
  readonly scheduler: PeriodicScheduler;
  agent(
    steps: readonly ScriptedStep[],
    options?: AgentOptions,
    tools?: readonly AnyTool[],
    silenceMs?: number,
    /** What the agent is given in place of the bench's own store. */
    store?: StateStore,
  ): Promise<{ agent: Agent; model: ScriptedModel }>;
  /** An agent on a model of the caller's own making. */
  agentOn(
    model: ScriptedModel,
    options?: AgentOptions,
    tools?: readonly AnyTool[],
    store?: StateStore,
    approvalPolicy?: ApprovalPolicy,
  ): Promise<Agent>;
  /** Lets everything settle, moving time in small steps, until the call has ended. */
  finished(turn: Turn): Promise<TurnFinished>;
  /** The events of a call that has ended. */
  eventsOf(turn: Turn): Promise<TurnEvent[]>;
  close(): Promise<void>;
}

export function createBench(): Bench {
  const host = virtualHost();
  const store = createMemoryStore({ host });
  const scheduler = createPeriodicScheduler({ host });
  const agents: Agent[] = [];
  const agentOn: Bench["agentOn"] = async (
    model,
    options = {},
    tools = [],
    given = store,
    approvalPolicy?: ApprovalPolicy,
  ) => {
    const presence = await openProcessPresence({ host });
    const agent = await createAgent({ store: given, model, tools, host, scheduler, presence, approvalPolicy }, options);
    agents.push(agent);
    return agent;
  };
  return {
    host,
    store,
    scheduler,
    agentOn,
    agent: async (steps, options = {}, tools = [], silenceMs, given) => {
      const model = { ...scriptedModel(steps), ...(silenceMs === undefined ? {} : { silenceMs }) };
      return { agent: await agentOn(model, options, tools, given), model };
    },
    finished: async (turn) => {
      let finished: TurnFinished | undefined;
      void turn.result.then((one) => (finished = one));
      for (let step = 0; finished === undefined; step++) {
        if (step > 20_000) throw new Error("The call does not end.");
        await host.advance(step < 20 ? 1 : 100);
      }
      return finished;
    },
    eventsOf: async (turn) => {
      const events: TurnEvent[] = [];
      for await (const event of turn) events.push(event);
      return events;
    },
    close: async () => {
      const closing = Promise.all(agents.map((agent) => agent.close()));
      let isClosed = false;
      void closing.then(() => (isClosed = true));
      for (let step = 0; !isClosed && step < 1000; step++) await host.advance(50);
      await closing;
      await scheduler.close();
    },
  };
}
