/**
 * A process that meets damage in a store, tells of it, waits for its stdin to end, and then simply ends:
 * node damaged-store.ts PATH GUARD
 * GUARD `guarded`: through the store. `unguarded`: the same writes on SQLite itself.
 */
import Database from "better-sqlite3";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { grantTo, says } from "../scene.ts";
import { tell } from "./process-output.ts";

const [path = "", guard = "guarded"] = process.argv.slice(2);

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : String(error);
}

async function guarded(): Promise<unknown> {
  const store = await openSqliteStore(path, { host: systemHost });
  const grant = await grantTo(store, "a");
  await store.turns.begin(grant, "turn-a", []);
  const entries = [says("key")];
  return store.transcript.append({ grant, turnId: "turn-a", entries }).catch(codeOf);
}

// Held to the end: a connection that is collected closes, and would checkpoint before the parent has looked.
let held: Database.Database | undefined;

function unguarded(): unknown {
  const database = new Database(path);
  held = database;
  database.prepare("UPDATE store SET last_input_seq = last_input_seq + 1").run();
  try {
    return database.prepare("INSERT INTO entry (session_no, seq) VALUES (1, 1)").run();
  } catch (error) {
    return codeOf(error);
  }
}

tell({ code: await (guard === "guarded" ? guarded() : unguarded()) });
process.stdin.on("end", () => void held?.open).resume();
