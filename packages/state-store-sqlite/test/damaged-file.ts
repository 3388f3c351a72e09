import { closeSync, openSync, writeSync } from "node:fs";
import Database from "better-sqlite3";

/** Overwrites the first page of a table with zeros, in a store that nobody has open. */
export function destroyTable(path: string, table: string): void {
  const database = new Database(path);
  const page = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").pluck().get(table) as number;
  const pageSize = database.pragma("page_size", { simple: true }) as number;
  database.close();
  const file = openSync(path, "r+");
  writeSync(file, Buffer.alloc(pageSize), 0, pageSize, (page - 1) * pageSize);
  closeSync(file);
}
