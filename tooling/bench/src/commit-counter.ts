import Database from "better-sqlite3";

/** Counts the commits of this process that wait for the disk. */
export interface CommitCounter extends Disposable {
  /** Since the last call. */
  take(): number;
}

type Prepare = Database.Database["prepare"];

/**
 * Watches every statement that is prepared from now on, so it must be there before a store is opened. A commit counts
 * when its transaction changed rows and the connection is at FULL or EXTRA at that moment.
 */
export function countFullCommits(): CommitCounter {
  const prototype = Database.prototype as { prepare: Prepare };
  const { prepare } = prototype;
  const normal = 1;
  let count = 0;
  prototype.prepare = function watched(this: Database.Database, sql: string) {
    const statement = prepare.call(this, sql);
    const verb = /^\s*(BEGIN|COMMIT)\b/i.exec(sql)?.[1]?.toUpperCase();
    if (verb === undefined) return statement;
    const changes = prepare.call(this, "SELECT total_changes()").pluck();
    const run = statement.run.bind(statement) as () => Database.RunResult;
    Object.defineProperty(statement, "run", {
      value: () => {
        const total = Number(changes.get());
        if (verb === "BEGIN") changesAtBegin.set(this, total);
        else if (
          total > (changesAtBegin.get(this) ?? 0) &&
          Number(this.pragma("synchronous", { simple: true })) > normal
        )
          count++;
        return run();
      },
    });
    return statement;
  } as Prepare;
  const changesAtBegin = new WeakMap<Database.Database, number>();
  return {
    take: () => {
      const taken = count;
      count = 0;
      return taken;
    },
    [Symbol.dispose]: () => void (prototype.prepare = prepare),
  };
}
