/** Whether a row still says what was stored: the digests of what carries one, and JSON where JSON belongs. */
import { digestOf } from "@turnkeeper/state-store";
import type { FoundValue } from "./record.ts";

export type FoundRow = Record<string, FoundValue>;

function parsed(text: FoundValue): unknown {
  if (typeof text !== "string") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function isJsonOrNull(text: FoundValue | undefined): boolean {
  return text === null || text === undefined || isObject(parsed(text));
}

const notJson = (column: string): string => `column ${column} holds text that is no JSON`;
const otherContent = "its content does not have the digest it was stored with";

function digestMatches(value: unknown, digest: FoundValue | undefined): boolean {
  try {
    return digestOf(value) === digest;
  } catch {
    // Nested deeper than the stack: nothing of ours wrote it.
    return false;
  }
}

const examinations: Readonly<Record<string, (row: FoundRow) => string | undefined>> = {
  entry(row) {
    const body = parsed(row["body"] ?? null);
    if (!isObject(body)) return notJson("body");
    return digestMatches(body, row["digest"]) ? undefined : otherContent;
  },
  input(row) {
    if (!isJsonOrNull(row["runner"])) return notJson("runner");
    if (!isJsonOrNull(row["settings"])) return notJson("settings");
    return digestMatches(row["text"], row["digest"]) ? undefined : otherContent;
  },
  turn(row) {
    if (!isObject(parsed(row["holder"] ?? null))) return notJson("holder");
    return ["stop", "usage"].filter((column) => !isJsonOrNull(row[column])).map(notJson)[0];
  },
};

/** Columns that count; the least that a store writes into each. */
const leastOf: ReadonlyMap<string, number> = new Map([
  ...["seq", "session_no", "fencing_token"].map((name) => [name, 1] as const),
  ...["place", "last_seq", "revision", "compaction_count", "archived_through_seq", "last_input_seq"].map(
    (name) => [name, 0] as const,
  ),
]);

function isForeign(name: string, value: FoundValue): boolean {
  if (typeof value === "bigint" || Buffer.isBuffer(value)) return true;
  return typeof value === "number" && value < (leastOf.get(name) ?? Number.NEGATIVE_INFINITY);
}

/** Why the row cannot be taken for what was stored; absent when nothing speaks against it. */
export function faultOf(table: string, row: FoundRow): string | undefined {
  const foreign = Object.entries(row).find(([name, value]) => isForeign(name, value));
  if (foreign) return `column ${foreign[0]} holds a value that no store writes`;
  return examinations[table]?.(row);
}

const leaseHolding = ["holder_id", "holder", "ttl_ms", "renew_count", "expires_boot_id", "expires_boot_ms"] as const;

/** A lease whose holder or predecessors cannot be read is kept without them, for its fencing token. */
export function withoutBrokenHolder(found: FoundRow): FoundRow {
  const row = isJsonOrNull(found["predecessors"]) ? found : { ...found, predecessors: null };
  if (isJsonOrNull(row["holder"])) return row;
  const free = Object.fromEntries([...leaseHolding, "acquired_at_ms", "expires_at_ms"].map((name) => [name, null]));
  return { ...row, ...free };
}
