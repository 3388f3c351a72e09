import { createRequire } from "node:module";
import type { Skipped } from "./benchmark.ts";

/** What is used of each peer; they bring no types, or more than one wants to know. */
export interface Peers {
  ai: {
    readonly streamText: (options: object) => { readonly textStream: AsyncIterable<string> };
    readonly jsonSchema: (schema: object) => unknown;
    readonly stepCountIs: (count: number) => unknown;
  };
  "proper-lockfile": {
    readonly lock: (
      file: string,
      options?: { readonly retries?: Readonly<Record<string, number>> },
    ) => Promise<() => Promise<void>>;
  };
  redlock: new (
    clients: readonly unknown[],
    options?: Readonly<Record<string, number>>,
  ) => {
    lock(
      resource: string,
      ttlMs: number,
    ): Promise<{ unlock(): Promise<void>; extend(ttlMs: number): Promise<{ unlock(): Promise<void> }> }>;
  };
  ioredis: { readonly Redis: new (options: { readonly path: string }) => { quit(): Promise<unknown> } };
  "graphile-worker": {
    readonly Logger: new (factory: () => () => void) => object;
    readonly makeWorkerUtils: (options: object) => Promise<{
      migrate(): Promise<void>;
      addJob(task: string, payload: object): Promise<unknown>;
      release(): Promise<void>;
    }>;
    readonly run: (options: object) => Promise<{
      addJob(task: string, payload: object): Promise<unknown>;
      stop(): Promise<void>;
    }>;
    readonly runTaskListOnce: (options: object, tasks: object, client: unknown) => Promise<unknown>;
  };
  "pg-boss": new (options: object) => {
    start(): Promise<unknown>;
    createQueue(name: string): Promise<unknown>;
    send(name: string, data: object): Promise<unknown>;
    work(name: string, handler: () => Promise<void>): Promise<unknown>;
    fetch(name: string): Promise<readonly { readonly id: string }[]>;
    complete(name: string, id: string): Promise<unknown>;
    stop(options: object): Promise<unknown>;
  };
  "toad-scheduler": {
    readonly ToadScheduler: new () => { addSimpleIntervalJob(job: unknown): void; removeById(id: string): unknown };
    readonly SimpleIntervalJob: new (
      schedule: { readonly milliseconds: number },
      task: unknown,
      options: { readonly id: string },
    ) => unknown;
    readonly Task: new (id: string, body: () => void) => unknown;
  };
  "@langchain/langgraph-checkpoint-sqlite": {
    readonly SqliteSaver: new (database: unknown) => {
      put(config: unknown, checkpoint: unknown, metadata: unknown): Promise<unknown>;
      getTuple(config: unknown): Promise<{
        readonly checkpoint: { readonly channel_values: { readonly messages: readonly unknown[] } };
      }>;
    };
  };
  "@langchain/langgraph-checkpoint": {
    readonly emptyCheckpoint: () => Readonly<Record<string, unknown>>;
    readonly uuid6: (step: number) => string;
  };
  "@langchain/core/messages": {
    readonly AIMessage: new (fields: { readonly content: string; readonly id: string }) => unknown;
    readonly HumanMessage: new (fields: { readonly content: string; readonly id: string }) => unknown;
  };
}

const requirePeer = createRequire(new URL("../peers/package.json", import.meta.url));

/** The peer, where it was installed and is wanted: `BENCH_PEERS=none` measures ours and the limits alone. */
export function findPeer<Name extends keyof Peers>(name: Name): Peers[Name] | undefined {
  if (process.env["BENCH_PEERS"] === "none") return undefined;
  try {
    return requirePeer(name) as Peers[Name];
  } catch (error) {
    const isAbsent = error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND";
    if (isAbsent) return undefined;
    throw error;
  }
}

export function peer<Name extends keyof Peers>(name: Name): Peers[Name] {
  const found = findPeer(name);
  if (found === undefined) throw new Error(`${name} is not installed: node tooling/bench/run.mjs --install-peers`);
  return found;
}

/** Why these peers are missing, if one is. */
export function missingPeers(caseName: string, ...names: readonly (keyof Peers)[]): Skipped | undefined {
  const missing = names.filter((name) => findPeer(name) === undefined);
  if (missing.length === 0) return undefined;
  const isUnwanted = process.env["BENCH_PEERS"] === "none";
  const why = isUnwanted ? "left out by BENCH_PEERS=none" : "not installed (run.mjs --install-peers)";
  return { name: caseName, skipped: `${missing.join(", ")} ${why}` };
}
