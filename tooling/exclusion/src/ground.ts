/**
 * What the crew stands on: a file that all share, or a server that they reach from several hosts. A ground has faults of
 * its own, beside those of the processes.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { systemHost } from "@turnkeeper/kernel";
import type { Random } from "@turnkeeper/kernel";
import { startPostgres } from "@turnkeeper/postgres-server";
import type { PostgresServer } from "@turnkeeper/postgres-server";
import type { StateStore } from "@turnkeeper/state-store";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { startFaultProxy } from "./fault-proxy.ts";
import type { FaultProxy } from "./fault-proxy.ts";

export const groundNames = ["file", "server"] as const;
export type GroundName = (typeof groundNames)[number];

/** Where a worker finds the store, and as which host: its argument, as JSON. */
export interface Place {
  /** Absent: the file in the crew's folder. */
  readonly url?: string;
  readonly host?: { readonly name: string; readonly clockOffMs: number };
}

/** What happened to the server and the way to it. */
export interface GroundReach {
  readonly serverKills: number;
  readonly cuts: number;
  readonly halfCloses: number;
  readonly delays: number;
}

export interface Ground {
  /** The parent's own handle, past all faults but the server's. */
  readonly store: StateStore;
  readonly reach: GroundReach;
  /** Of the worker that is started as the so-manieth. */
  placeOf(number: number): Place;
  /** One act of what befalls the ground. */
  act(): Promise<void>;
  /** Nothing more befalls it. */
  rest(): void;
  close(): Promise<void>;
}

async function openFile(folder: string): Promise<Ground> {
  const store = await openSqliteStore(join(folder, "state.db"), { host: systemHost });
  return {
    store,
    reach: { serverKills: 0, cuts: 0, halfCloses: 0, delays: 0 },
    placeOf: () => ({}),
    act: async () => {},
    rest: () => {},
    close: () => store.close(),
  };
}

/** Their clocks are hours apart, which must change nothing. */
const hosts = [
  { name: "alpha", clockOffMs: -5 * 3_600_000 },
  { name: "beta", clockOffMs: 0 },
  { name: "gamma", clockOffMs: 7 * 3_600_000 },
];

/** Between two acts. The server is back within a second or two, and a turn should come to something in between. */
const gapMsMax = 2_500;
const downMsMax = 800;
const delayMsMax = 150;

/** In turn, so that a short run meets each. */
const acts = ["kill", "cut", "half-close", "delay"] as const;

class ServerGround implements Ground {
  readonly store: StateStore;
  readonly reach = { serverKills: 0, cuts: 0, halfCloses: 0, delays: 0 };
  readonly #server: PostgresServer;
  readonly #proxy: FaultProxy;
  readonly #random: Pick<Random, "unit">;
  #actCount = 0;
  #nextMs: number;

  constructor(server: PostgresServer, proxy: FaultProxy, store: StateStore, random: Pick<Random, "unit">) {
    this.#server = server;
    this.#proxy = proxy;
    this.store = store;
    this.#random = random;
    this.#nextMs = performance.now() + gapMsMax;
  }

  placeOf(number: number): Place {
    const url = new URL(this.#server.url);
    url.port = `${this.#proxy.port}`;
    const host = hosts[number % hosts.length];
    return { url: url.href, ...(host ? { host } : {}) };
  }

  async act(): Promise<void> {
    if (performance.now() < this.#nextMs) return;
    const [how, gap] = [this.#random.unit(), this.#random.unit()];
    this.#proxy.delayMs = 0;
    await this.#befall(acts[this.#actCount++ % acts.length] ?? "kill", how);
    this.#nextMs = performance.now() + gap * gapMsMax;
  }

  async #befall(what: (typeof acts)[number], how: number): Promise<void> {
    switch (what) {
      case "kill":
        await this.#server.kill();
        await pause(how * downMsMax);
        await this.#server.start();
        this.reach.serverKills++;
        return;
      case "cut":
        this.#proxy.cut();
        this.reach.cuts++;
        return;
      case "half-close":
        this.#proxy.halfClose();
        this.reach.halfCloses++;
        return;
      case "delay":
        this.#proxy.delayMs = how * delayMsMax;
        this.reach.delays++;
    }
  }

  rest(): void {
    this.#proxy.delayMs = 0;
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.#proxy.close();
    await this.#server.close();
  }
}

async function openServer(random: Pick<Random, "unit">): Promise<Ground> {
  const server = await startPostgres({ settings: { max_connections: "200" } });
  const proxy = await startFaultProxy(server.port);
  const store = await openPostgresStore(server.url, { host: systemHost });
  return new ServerGround(server, proxy, store, random);
}

export function openGround(name: GroundName, folder: string, random: Pick<Random, "unit">): Promise<Ground> {
  return name === "file" ? openFile(folder) : openServer(random);
}
