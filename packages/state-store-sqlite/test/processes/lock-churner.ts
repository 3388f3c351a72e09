/** A process that takes and frees locks on many files without end: node lock-churner.ts FOLDER */
import { join } from "node:path";
import Database from "better-sqlite3";
import { tell } from "./process-output.ts";

const databases = Array.from(
  { length: 120 },
  (_, index) => new Database(join(process.argv[2] ?? "", `churned-${index}.db`)),
);
const busy = new Set<Database.Database>();
// A fixed walk through all of them, so that locks come and go anywhere in the kernel's table.
for (let step = 0; ; step = (step + 37) % databases.length) {
  const database = databases[step];
  if (!database) break;
  database.exec(busy.delete(database) ? "ROLLBACK" : "BEGIN IMMEDIATE");
  if (database.inTransaction) busy.add(database);
  if (busy.size === databases.length) tell({ ready: true });
}
