/** Rows of one kind as they were read, under their ids, and which of them a call has set. */
export class ChangedRows<Row> {
  readonly #idOf: (row: Row) => string;
  readonly #rows: Map<string, Row>;
  readonly #changedIds = new Set<string>();

  constructor(read: Iterable<Row> | null | undefined, idOf: (row: Row) => string) {
    this.#idOf = idOf;
    this.#rows = new Map(Array.from(read ?? [], (row) => [idOf(row), row]));
  }

  get all(): readonly Row[] {
    return [...this.#rows.values()];
  }

  /** What is to be written. */
  get changed(): readonly Row[] {
    return [...this.#changedIds].flatMap((id) => this.#rows.get(id) ?? []);
  }

  get isChanged(): boolean {
    return this.#changedIds.size > 0;
  }

  row(id: string): Row | undefined {
    return this.#rows.get(id);
  }

  set(row: Row): void {
    const id = this.#idOf(row);
    this.#rows.set(id, row);
    this.#changedIds.add(id);
  }

  /** The row is gone from here on, and not written. */
  drop(id: string): void {
    this.#rows.delete(id);
    this.#changedIds.delete(id);
  }

  /** It is not written from here: another row takes its place. */
  leave(id: string): void {
    this.#changedIds.delete(id);
  }

  leaveAll(): void {
    this.#changedIds.clear();
  }
}
