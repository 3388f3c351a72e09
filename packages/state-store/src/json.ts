import { createHash } from "node:crypto";

/** What a store keeps of other people's data: plain JSON. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/** JSON with sorted keys and no `undefined`: equal values give equal text, whatever order their keys were set in. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((one) => canonicalJson(one ?? null)).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const parts = Object.entries(value)
      .filter(([, one]) => one !== undefined)
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, one]) => `${JSON.stringify(key)}:${canonicalJson(one)}`);
    return `{${parts.join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/**
 * SHA-256 (hex) of the canonical JSON. Stored beside what it covers: it tells a harmless retry from other content
 * under the same key, and it shows a bit that flipped on disk, which SQLite's own integrity check does not.
 */
export function digestOf(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex");
}
