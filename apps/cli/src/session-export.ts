import type { Entry, SessionRecords } from "@turnkeeper/state-store";
import { jsonLine } from "./json-line.ts";

/**
 * Version 1 of the export: a header, then inputs, turns and entries, one object a line, each with its `type` and
 * everything the store has of it, and an end that counts the lines before it. A reader refuses a version it does not
 * know, and a file without its end.
 */
export const exportFormat = "turnkeeper-session";
export const exportVersion = 1;

/** The lines of `sessions export` before its entries. The lease is left out: it holds nothing elsewhere. */
export function* recordLines(records: SessionRecords): Generator<string> {
  const { session, fencingToken, compactionCount, summaries, inputs, turns } = records;
  const header = { type: "session", format: exportFormat, version: exportVersion };
  yield jsonLine({ ...header, ...session, fencingToken, compactionCount, summaries });
  for (const input of inputs) yield jsonLine({ type: "input", ...input });
  for (const turn of turns) yield jsonLine({ type: "turn", ...turn });
}

export function entryLine(entry: Entry): string {
  return jsonLine({ type: "entry", ...entry });
}

export function endLine(lineCount: number): string {
  return jsonLine({ type: "end", lineCount });
}
