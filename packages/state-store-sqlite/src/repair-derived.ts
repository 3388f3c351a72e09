import { derivedFaults, queueFaults } from "./derived-rows.ts";
import type { DerivedFault } from "./derived-rows.ts";
import { openDatabase } from "./open-database.ts";
import type { SqliteStoreDeps } from "./open-store.ts";
import { defaultSqliteStoreOptions } from "./options.ts";
import { rebuildSearchIndex } from "./rebuild-search-index.ts";
import { acquireDatabase } from "./registry.ts";
import { indexFault, sampleIndex, SearchIndexBroken } from "./search-index.ts";
import type { ListedSessionRow } from "./session-rows.ts";
import { StoreHandle } from "./store-handle.ts";
import { preparePath } from "./store-path.ts";
import type { Transaction } from "./transaction.ts";

export interface RepairOptions {
  /** This session alone; without it every session, the queue's number and the search index. */
  readonly sessionId?: string;
  /** Says what is wrong, and changes nothing. Default false. */
  readonly isDryRun?: boolean;
}

/** Something derived that contradicted the rows it is derived from. */
export interface DerivedMend {
  /** Absent where it is the store's. */
  readonly session?: string;
  readonly detail: string;
}

/** The next session, or the one that is asked for; they are met by number, so that one made meanwhile is met too. */
function nextSession(tx: Transaction, afterNo: number, sessionId: string | undefined): ListedSessionRow | undefined {
  return tx.rows.get<ListedSessionRow>(
    "SELECT * FROM session WHERE session_no > ? AND session_id = coalesce(?, session_id) ORDER BY session_no LIMIT 1",
    afterNo,
    sessionId ?? null,
  );
}

class DerivedRepair {
  readonly #handle: StoreHandle;
  readonly #isDryRun: boolean;

  constructor(handle: StoreHandle, isDryRun: boolean) {
    this.#handle = handle;
    this.#isDryRun = isDryRun;
  }

  /** Found by reading alone; the write finds it again, since it may be gone by then. */
  async #mend(attempt: string, find: (tx: Transaction) => readonly DerivedFault[]): Promise<readonly string[]> {
    const details = (faults: readonly DerivedFault[]): readonly string[] => faults.map(({ detail }) => detail);
    const found = await this.#handle.read(`look at ${attempt}`, (tx) => details(find(tx)));
    if (this.#isDryRun || found.length === 0) return found;
    return this.#handle.write("ordinary", `repair ${attempt}`, (tx) => {
      const faults = find(tx);
      for (const fault of faults) fault.mend(tx);
      return details(faults);
    });
  }

  async *sessions(only: string | undefined): AsyncGenerator<DerivedMend> {
    for (let lastNo = Number.MIN_SAFE_INTEGER; ;) {
      const afterNo = lastNo;
      const session = await this.#handle.read("look for a session", (tx) => nextSession(tx, afterNo, only));
      if (!session) return;
      lastNo = session.session_no;
      const details = await this.#mend(`what is derived of session ${session.session_id}`, (tx) => {
        const row = nextSession(tx, session.session_no - 1, session.session_id);
        return row ? derivedFaults(tx, row) : [];
      });
      for (const detail of details) yield { session: session.session_id, detail };
    }
  }

  /** By its counts, then by what it finds. */
  async #indexFault(): Promise<string | undefined> {
    try {
      const fault = await this.#handle.read("look at the search index", indexFault);
      if (fault !== undefined) return fault;
      for (let afterNo: number | undefined = 0; afterNo !== undefined;) {
        const from: number = afterNo;
        const piece = await this.#handle.read("look at the search index", (tx) => sampleIndex(tx, from));
        if (piece.hiddenNo !== undefined) return `the search index does not find entry number ${piece.hiddenNo}`;
        ({ afterNo } = piece);
      }
    } catch (error) {
      if (error instanceof SearchIndexBroken) return "the search index cannot be read";
      throw error;
    }
    return undefined;
  }

  async *store(path: string, deps: SqliteStoreDeps): AsyncGenerator<DerivedMend> {
    for (const detail of await this.#mend("the store's row", queueFaults)) yield { detail };
    const fault = await this.#indexFault();
    if (fault === undefined) return;
    if (!this.#isDryRun) await rebuildSearchIndex(path, deps);
    yield { detail: fault };
  }
}

/**
 * Derives anew what contradicts the rows it is derived from: what a list tells of a session, the marks of its
 * compactions, the open calls of its turn, where its turns lie, the queue's number, and the search index. Each session is one read, and one
 * write where there is something to mend; its entries are read one by one. Answers what was mended, or with `isDryRun`
 * what would be. Safe to repeat, beside whatever else uses the store. Rejects like `openSqliteStore` and any write.
 */
export async function repairDerived(
  path: string,
  deps: SqliteStoreDeps,
  options: RepairOptions = {},
): Promise<readonly DerivedMend[]> {
  const realPath = preparePath(path);
  const holding = await acquireDatabase(realPath, () => openDatabase(realPath, deps.host, defaultSqliteStoreOptions));
  const handle = new StoreHandle(holding, deps.host);
  try {
    const { sessionId, isDryRun = false } = options;
    const repair = new DerivedRepair(handle, isDryRun);
    const mends: DerivedMend[] = [];
    for await (const mend of repair.sessions(sessionId)) mends.push(mend);
    if (sessionId === undefined) for await (const mend of repair.store(realPath, deps)) mends.push(mend);
    return mends;
  } finally {
    await handle.close();
  }
}
