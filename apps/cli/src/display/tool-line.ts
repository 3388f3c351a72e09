import { clipped } from "./style.ts";

type Json = unknown;

function shortValue(value: Json): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** What a call is about, on one line: its one argument, or all of them by name. */
export function callSummary(input: Json, width: number): string {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return clipped(shortValue(input), width);
  const entries = Object.entries(input);
  const [only] = entries;
  if (entries.length === 1 && only) return clipped(shortValue(only[1]), width);
  return clipped(entries.map(([name, value]) => `${name}=${shortValue(value)}`).join(" "), width);
}

/** What a result says, on one line: its first line that says something. */
export function resultSummary(output: Json, width: number): string {
  const text = typeof output === "string" ? output : (JSON.stringify(output) ?? "");
  const first = text.split("\n").find((line) => line.trim() !== "") ?? "";
  const count = text.split("\n").filter((line) => line.trim() !== "").length;
  const more = count > 1 ? ` (+${count - 1} lines)` : "";
  return `${clipped(first, Math.max(10, width - more.length))}${more}`;
}
