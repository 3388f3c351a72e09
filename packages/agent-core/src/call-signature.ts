import { createHash } from "node:crypto";
import type { JsonValue } from "@turnkeeper/state-store";

function canonical(value: JsonValue | undefined): string {
  if (Array.isArray(value)) return `[${value.map((one: JsonValue) => canonical(one)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  const fields = Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .toSorted(([left], [right]) => (left < right ? -1 : 1));
  return `{${fields.map(([key, one]) => `${JSON.stringify(key)}:${canonical(one)}`).join(",")}}`;
}

/** The same text for equal JSON, whatever order its keys came in; short, however long the value is. */
export function signatureOf(value: JsonValue): string {
  return createHash("sha256").update(canonical(value)).digest("base64");
}
