import type { Host } from "@turnkeeper/kernel";
import type { Durability } from "./connection.ts";
import type { Holding } from "./registry.ts";
import { closedError } from "./store-failure.ts";
import type { Transaction } from "./transaction.ts";

interface CallKind {
  /** How long a call waits for a lock that another process holds. */
  readonly patienceMs: number;
  readonly durability: Durability;
}

type CallKindName = "turn-data" | "ordinary" | "lease" | "renewal" | "derived";

/** What each kind of call waits, and what it is worth to the disk. */
const callKinds: Readonly<Record<CallKindName, CallKind>> = {
  /** A failure would cost the user's turn, so it waits longest. */
  "turn-data": { patienceMs: 60_000, durability: "full" },
  ordinary: { patienceMs: 20_000, durability: "full" },
  /** A lease need not survive a power cut, since its holder does not; what it fences lies in the same file. */
  lease: { patienceMs: 20_000, durability: "normal" },
  /** Repeated anyway; a late one is worth nothing. */
  renewal: { patienceMs: 5_000, durability: "normal" },
  /** Done again whenever it is missing, so nothing waits for it. */
  derived: { patienceMs: 250, durability: "normal" },
};

/** Every handle of this copy of the package that is not closed. */
const openHandles = new Set<StoreHandle>();

/**
 * Closes every store that this process has open, as their own `close` would: for the end of a program that no longer
 * knows who opened what. Calls that wait for a lock are let finish. Answers how many handles there were.
 */
export async function closeAllStores(): Promise<number> {
  const handles = [...openHandles];
  await Promise.all(handles.map((handle) => handle.close()));
  return handles.length;
}

/** One caller's hold on a shared database: its host, and whether it is still open. */
export class StoreHandle {
  readonly #holding: Holding;
  readonly #host: Host;
  #closing: Promise<void> | undefined;

  constructor(holding: Holding, host: Host) {
    this.#holding = holding;
    this.#host = host;
    openHandles.add(this);
  }

  /** Runs `body` in one write transaction, in the order of calls; see `SharedDatabase` for what its answer promises. */
  write<T>(kind: CallKindName, attempt: string, body: (tx: Transaction) => T): Promise<T> {
    const { database } = this.#holding;
    if (this.#closing) return Promise.reject(closedError(database.file.path));
    const { patienceMs, durability } = callKinds[kind];
    return database.write({ owner: this, host: this.#host, attempt, patienceMs, durability }, body);
  }

  async read<T>(attempt: string, body: (tx: Transaction) => T): Promise<T> {
    const { database } = this.#holding;
    if (this.#closing) throw closedError(database.file.path);
    return database.read({ owner: this, host: this.#host, attempt, patienceMs: callKinds.ordinary.patienceMs }, body);
  }

  /** Whether the files are still those that were opened; throws what a write would be refused with. */
  async check(): Promise<void> {
    const { database } = this.#holding;
    if (this.#closing) throw closedError(database.file.path);
    database.check("look after the store");
  }

  /** Refuses new calls, lets those that wait for a lock finish, and gives the database back. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await this.#holding.database.settled(this);
    this.#holding.release();
    openHandles.delete(this);
  }
}
