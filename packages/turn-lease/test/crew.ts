/** Real processes around one store, and what they say. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { systemHost } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { TurnLeaseDeps } from "@turnkeeper/turn-lease";

export interface Said {
  readonly event: string;
  readonly name: string;
  readonly atUs: number;
  readonly [fact: string]: unknown;
}

export class Worker {
  readonly child: ChildProcess;
  readonly said: Said[] = [];
  readonly exit: Promise<readonly [code: number | null, signal: string | null]>;
  #listener: () => void = () => {};

  constructor(child: ChildProcess) {
    this.child = child;
    this.exit = once(child, "exit") as Promise<[number | null, string | null]>;
    const lines = createInterface({ input: child.stdout ?? process.stdin });
    lines.on("line", (line) => {
      this.said.push(JSON.parse(line) as Said);
      this.#listener();
    });
  }

  /** The next thing it says of this kind, or has said already. */
  async hear(event: string): Promise<Said> {
    for (;;) {
      const said = this.said.find((one) => one.event === event);
      if (said) return said;
      await new Promise<void>((resolve) => (this.#listener = resolve));
    }
  }

  goOn(): void {
    this.child.stdin?.write("\n");
  }
}

export interface Crew {
  readonly store: StateStore;
  /** What this process itself takes part with. */
  readonly deps: TurnLeaseDeps;
  start(mode: string, settings?: object): Worker;
  close(): Promise<void>;
}

export async function gather(): Promise<Crew> {
  const folder = await mkdtemp(join(tmpdir(), "tk-"));
  const host = systemHost;
  const store = await openSqliteStore(join(folder, "state.db"), { host });
  const presence = await openProcessPresence({ host }, { socketFolder: join(folder, "sockets") });
  const scheduler = createPeriodicScheduler({ host });
  const workers: Worker[] = [];
  return {
    store,
    deps: { store: store.leases, inbox: store.inbox, scheduler, host, presence },
    start(mode, settings = {}) {
      const script = fileURLToPath(new URL("processes/worker.ts", import.meta.url));
      const args = [
        "--import",
        "tsx",
        "--conditions=@turnkeeper/source",
        script,
        mode,
        folder,
        JSON.stringify(settings),
      ];
      const worker = new Worker(spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] }));
      workers.push(worker);
      return worker;
    },
    async close() {
      for (const { child, exit } of workers) {
        if (child.exitCode === null && child.signalCode === null) {
          child.kill("SIGKILL");
          await exit;
        }
      }
      await scheduler.close();
      await presence.close();
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}
