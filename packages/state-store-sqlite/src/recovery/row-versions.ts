/**
 * Which of two copies of a row is the newer. A damaged file may show a page as it was before and after a split; rows of
 * this package move in one direction only, so the copies themselves tell.
 */
import type { FoundRow } from "./row-examination.ts";
import type { FoundValue } from "./record.ts";

interface Identity {
  /** The columns that name a row, whatever its number. */
  readonly key: readonly string[];
  /** Grows, column by column from the left, over the life of a row. */
  readonly age: (row: FoundRow) => readonly number[];
}

const number = (value: FoundValue | undefined): number => (typeof value === "number" ? value : 0);
const isThere = (value: FoundValue | undefined): number => (value === null || value === undefined ? 0 : 1);

const identities: Readonly<Record<string, Identity>> = {
  store: { key: ["store_no"], age: (row) => [number(row["last_input_seq"])] },
  session: { key: ["session_id"], age: (row) => [number(row["revision"]), number(row["updated_at_ms"])] },
  lease: {
    key: ["session_id"],
    age: (row) => [number(row["fencing_token"]), 1 - isThere(row["holder_id"]), number(row["renew_count"])],
  },
  turn: {
    key: ["session_no", "turn_id"],
    age: (row) => [
      number(row["fencing_token"]),
      isThere(row["outcome"]),
      isThere(row["suspended_at_ms"]),
      isThere(row["stop"]),
    ],
  },
  input: {
    key: ["session_no", "input_id"],
    age: (row) => [
      number(row["seq"]),
      isThere(row["ended_as"]),
      isThere(row["turn_id"]),
      isThere(row["woken_boot_id"]),
    ],
  },
  entry: { key: ["session_no", "key", "digest"], age: (row) => [number(row["archived"])] },
};

export function keyOf(table: string): readonly string[] | undefined {
  return identities[table]?.key;
}

export function isNewer(table: string, row: FoundRow, than: FoundRow): boolean {
  const age = identities[table]?.age;
  if (!age) return false;
  const other = age(than);
  for (const [index, value] of age(row).entries()) {
    const difference = value - (other[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}
