import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { StateStore } from "@turnkeeper/state-store";
import { virtualProcesses } from "@turnkeeper/turn-lease/testing";
import type { VirtualProcess } from "@turnkeeper/turn-lease/testing";
import { createAgent } from "../src/index.ts";
import type { Agent, AgentOptions, AnyTool } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";

/** An agent in a process of its own, which can die. */
export interface Life {
  readonly agent: Agent;
  readonly presence: VirtualProcess;
  /** As by SIGKILL: nothing that it asks of its store comes to anything any more. */
  kill(): void;
  /** It ends in good order; a dead one, for the timers that it had. */
  end(): Promise<void>;
}

export interface Lives {
  start(
    instanceId: string,
    model: readonly ScriptedStep[],
    tools: readonly AnyTool[],
    options?: AgentOptions,
  ): Promise<Life>;
  /** A process that knows of the store alone. */
  bystander(): VirtualProcess;
}

/** Has whatever is asked of the store asked first whether its process lives. */
function mortal(store: StateStore, isDead: () => boolean): StateStore {
  const port = <Port extends object>(one: Port): Port =>
    new Proxy(one, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        return async (...args: unknown[]): Promise<unknown> => {
          if (isDead()) return new Promise(() => {});
          const answer: unknown = await Reflect.apply(member, target, args);
          return isDead() ? new Promise(() => {}) : answer;
        };
      },
    });
  const { sessions, leases, transcript, inbox, turns, spool } = store;
  return {
    sessions: port(sessions),
    leases: port(leases),
    transcript: port(transcript),
    inbox: port(inbox),
    turns: port(turns),
    spool: port(spool),
    check: () => store.check(),
    close: async () => {},
  };
}

/** Processes on the machine and the store of a bench. */
export function livesOn({ host, store }: Pick<Bench, "host" | "store">): Lives {
  const processes = virtualProcesses({ host });
  let bystanders = 0;
  return {
    bystander: () => processes.start({ instanceId: `bystander-${++bystanders}` }),
    start: async (instanceId, model, tools, options = {}) => {
      let isDead = false;
      const presence = processes.start({ instanceId });
      const scheduler = createPeriodicScheduler({ host });
      const deps = {
        store: mortal(store, () => isDead),
        model: scriptedModel(model),
        tools,
        host,
        scheduler,
        presence,
      };
      const agent = await createAgent(deps, options);
      return {
        agent,
        presence,
        kill: () => {
          isDead = true;
          presence.kill();
        },
        end: async () => {
          if (!isDead) await agent.close();
          await scheduler.close();
        },
      };
    },
  };
}
