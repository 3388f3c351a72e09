/** A process of another program that takes the write lock of a store and keeps it until its stdin ends: node lock-holder.ts PATH */
import Database from "better-sqlite3";
import { tell } from "./process-output.ts";

const database = new Database(process.argv[2] ?? "");
database.exec("BEGIN IMMEDIATE");
tell({ locked: true });
process.stdin
  .on("end", () => {
    database.exec("ROLLBACK");
    database.close();
  })
  .resume();
