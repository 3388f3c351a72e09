import { storeError } from "./store-failure.ts";

/** Reads a JSON column; text that is no JSON was not written by this package. */
export function parseJson<T>(text: string, name: string | (() => string)): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    const column = typeof name === "string" ? name : name();
    throw storeError(
      "STORE_CORRUPT",
      `Column ${column} holds text that is no JSON; find out what wrote it, and bring the row back from a backup.`,
      { column },
      error,
    );
  }
}

export function toJson(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}
