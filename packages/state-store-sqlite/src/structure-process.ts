/** The process that asks SQLite whether a file is sound: node structure-process.js PATH, with an IPC channel. */
import Database from "better-sqlite3";
import { codeOf } from "./store-failure.ts";

/** So many findings are enough to know. */
const faultsMax = 10;

/** The index is derived and made anew; damage of it is no damage of the store. */
const isOfIndex = /entry_gram/;

function faultsOf(path: string): readonly string[] {
  try {
    const database = new Database(path, { readonly: true, fileMustExist: true, timeout: 1000 });
    try {
      const rows = database.prepare<[], { quick_check: string }>(`PRAGMA quick_check(${faultsMax})`).all();
      return rows.map((row) => row.quick_check).filter((text) => text !== "ok" && !isOfIndex.test(text));
    } finally {
      database.close();
    }
  } catch (error) {
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error))) return [`${(error as Error).message} (${codeOf(error)})`];
    throw error;
  }
}

process.on("disconnect", () => process.exit(1));
const faults = faultsOf(process.argv[2] ?? "");
process.send?.(faults, () => process.exit(0));
