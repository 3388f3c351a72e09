import Database from "better-sqlite3";

/** A database as the raw cases use it: WAL, and SQLite's own waiting where another process has the lock. */
export function openRaw(path: string, synchronous: "NORMAL" | "FULL"): Database.Database {
  const database = new Database(path, { timeout: 5_000 });
  database.pragma("journal_mode = WAL");
  database.pragma(`synchronous = ${synchronous}`);
  return database;
}

/** The write transaction of the raw cases: two statements that were prepared once. */
export function openTransaction(database: Database.Database): <Result>(body: () => Result) => Result {
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  return (body) => {
    begin.run();
    const result = body();
    commit.run();
    return result;
  };
}
