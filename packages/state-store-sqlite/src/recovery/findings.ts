import type { Mend, MissingEntries, RecoveredTable, RefusedRow, UnreadPage } from "./recovery-report.ts";

/** A list longer than this is read by nobody, and a hostile file could make it as long as it likes. */
const listMax = 10_000;

type Counts = Record<"foundCount" | "broughtCount" | "olderCount" | "refusedCount", number>;

/** What a recovery comes upon, gathered for its report. */
export class Findings {
  readonly refusedRows: RefusedRow[] = [];
  readonly unreadPages: UnreadPage[] = [];
  readonly missingEntries: MissingEntries[] = [];
  readonly mends: Mend[] = [];
  readonly notes: string[] = [];
  unlistedCount = 0;
  readonly #counts = new Map<string, Counts>();

  count(table: string, what: keyof Counts): void {
    const counts = this.#counts.get(table) ?? { foundCount: 0, broughtCount: 0, olderCount: 0, refusedCount: 0 };
    counts[what]++;
    this.#counts.set(table, counts);
  }

  refuse(row: RefusedRow): void {
    if (row.table !== undefined) this.count(row.table, "refusedCount");
    this.#list(this.refusedRows, row);
  }

  get #lostPages(): readonly UnreadPage[] {
    return this.unreadPages.filter(({ isDerived }) => !isDerived);
  }

  leaveUnread(page: UnreadPage): void {
    this.#list(this.unreadPages, page);
  }

  miss(entries: MissingEntries): void {
    this.#list(this.missingEntries, entries);
  }

  mend(session: string, detail: string): void {
    this.#list(this.mends, { session, detail });
  }

  tables(names: readonly string[]): RecoveredTable[] {
    const none: Counts = { foundCount: 0, broughtCount: 0, olderCount: 0, refusedCount: 0 };
    return names.map((table) => ({ table, ...(this.#counts.get(table) ?? none) }));
  }

  get foundCount(): number {
    return [...this.#counts.values()].reduce((sum, { foundCount }) => sum + foundCount, 0);
  }

  /** How much there is to tell; zero means that all the source had is in the output as it was. */
  get toldCount(): number {
    const lists = [this.refusedRows, this.#lostPages, this.missingEntries, this.mends];
    return lists.reduce((sum, list) => sum + list.length, this.unlistedCount);
  }

  #list<T>(list: T[], item: T): void {
    if (list.length < listMax) list.push(item);
    else this.unlistedCount++;
  }
}
