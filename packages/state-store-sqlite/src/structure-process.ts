/** The process that asks SQLite whether a file is sound: node structure-process.js PATH, with an IPC channel. */
import Database from "better-sqlite3";
import { hasLog, logRemover } from "./log-remover.ts";
import { codeOf } from "./store-failure.ts";

/** What SQLite finds wrong with a file, a sentence each. */
export interface Structure {
  readonly faults: readonly string[];
  /** Of the search index, which is derived and made anew: no damage of the store. */
  readonly indexFaults: readonly string[];
}

/** So many findings are enough to know. */
const faultsMax = 10;

/** What a check says, all of it: where a page cannot be read at all, SQLite says so and then fails. */
function said(database: Database.Database, table?: string): readonly string[] {
  const lines: string[] = [];
  const argument = table === undefined ? faultsMax : `'${table}'`;
  try {
    for (const row of database
      .prepare<[], { integrity_check: string }>(`PRAGMA integrity_check(${argument})`)
      .iterate())
      lines.push(...row.integrity_check.split("\n"));
  } catch (error) {
    if (!/^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error))) throw error;
    if (lines.length === 0) lines.push(`${(error as Error).message} (${codeOf(error)})`);
  }
  return lines.filter((line) => line !== "ok" && !line.startsWith("*** in database"));
}

/** Whose damage it is: asked of each table, since a check of all of them ends at the first page that it cannot read. */
function byTable(database: Database.Database): Structure {
  const names = database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'")
    .pluck()
    .all();
  const found = names
    .filter((name) => !isSetAside.test(name))
    .flatMap((name) => said(database, name).map((line) => ({ name, line: `${name}: ${line}` })));
  const lines = (isWanted: (name: string) => boolean): readonly string[] =>
    found.filter(({ name }) => isWanted(name)).map(({ line }) => line);
  return {
    faults: lines((name) => !isOfIndex.test(name)).slice(0, faultsMax),
    indexFaults: lines((name) => isOfIndex.test(name)).slice(0, faultsMax),
  };
}

const isOfIndex = /^entry_gram/;
/** What could not be removed when the index was made anew: nobody reads it. */
const isSetAside = /^entry_gram_broken_\d/;

function hasSetAside(database: Database.Database): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name GLOB 'entry_gram_broken_[0-9]*'").get() !== undefined;
}

function structureOf(path: string): Structure {
  let database: Database.Database | undefined;
  const hadLog = hasLog(path);
  try {
    database = new Database(path, { readonly: true, fileMustExist: true, timeout: 1000 });
    const faults = said(database);
    if (faults.length === 0) return { faults, indexFaults: [] };
    const sorted = byTable(database);
    if (sorted.faults.length + sorted.indexFaults.length > 0) return sorted;
    // What belongs to no table: the list of free pages, a page that is used twice.
    return { faults: hasSetAside(database) ? [] : faults, indexFaults: [] };
  } catch (error) {
    if (!/^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error))) throw error;
    return { faults: [`${(error as Error).message} (${codeOf(error)})`], indexFaults: [] };
  } finally {
    const remover = hadLog ? undefined : logRemover(path);
    database?.close();
    remover?.close();
  }
}

/** What is said in place of a structure where the file could not be looked at. */
export interface Unseen {
  readonly code: string;
  readonly message: string;
}

function answerOn(path: string): Structure | Unseen {
  try {
    return structureOf(path);
  } catch (error) {
    return { code: codeOf(error), message: String(error) };
  }
}

process.on("disconnect", () => process.exit(1));
process.send?.(answerOn(process.argv[2] ?? ""), () => process.exit(0));
