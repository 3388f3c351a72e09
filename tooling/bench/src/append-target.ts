import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { EntryDraft } from "@turnkeeper/state-store";
import { beginTurn, fillSession, kilobyte, userDraft } from "./lease-holder.ts";
import type { RunningGrant } from "./lease-holder.ts";
import { openRaw, openTransaction } from "./raw-database.ts";

/** Where messages of a kilobyte are appended, one durable step each, and read again. */
export interface AppendTarget {
  append(sessionId: string): unknown;
  /** Answers how many messages there are. */
  load(sessionId: string): Promise<number>;
  close(): Promise<void>;
}

/** Through the API: fence, idempotency key and digest, pairing, and a commit that waits for the disk. */
export async function openStoreTarget(path: string, sessions: ReadonlyMap<string, number>): Promise<AppendTarget> {
  const store = await openSqliteStore(path, { host: systemHost });
  const running = new Map<string, RunningGrant>();
  for (const [sessionId, messageCount] of sessions) {
    const one = await beginTurn(store, sessionId);
    await fillSession(store, one, messageCount);
    running.set(sessionId, one);
  }
  let count = 0;
  return {
    append: async (sessionId) => {
      const one = running.get(sessionId);
      if (!one) throw new Error(`Session ${sessionId} was not opened.`);
      const entries: readonly EntryDraft[] = [userDraft(`entry-${++count}`)];
      const answer = await store.transcript.append({ grant: one.grant, turnId: one.turnId, entries });
      if (answer.kind !== "committed") throw new Error(`The store answered ${answer.kind}.`);
    },
    load: async (sessionId) => (await store.transcript.load(sessionId)).entries.length,
    close: () => store.close(),
  };
}

/** The least that does it: fence, insert, commit; `all()` and JSON.parse. */
export interface RawTarget extends AppendTarget {
  /** Several sessions' messages in one transaction: what a group costs. */
  appendAll(sessionIds: readonly string[]): void;
}

export function openRawTarget(path: string, sessions: ReadonlyMap<string, number>): RawTarget {
  const database = openRaw(path, "FULL");
  database.exec(
    `CREATE TABLE lease (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, token INTEGER NOT NULL);
     CREATE TABLE message (
       message_id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, body TEXT NOT NULL, at_ms REAL NOT NULL
     );
     CREATE INDEX message_session ON message (session_id, message_id);`,
  );
  const hold = database.prepare("INSERT INTO lease VALUES (?, 'holder', 1)");
  const fence = database.prepare("SELECT 1 FROM lease WHERE session_id = ? AND holder = ? AND token = ?");
  const add = database.prepare("INSERT INTO message (session_id, role, body, at_ms) VALUES (?, ?, ?, ?)");
  const find = database.prepare<[string], { body: string }>(
    "SELECT body FROM message WHERE session_id = ? ORDER BY message_id",
  );
  let count = 0;
  const insert = (sessionId: string): void => {
    if (!fence.get(sessionId, "holder", 1)) throw new Error("fenced");
    const body = { key: `entry-${++count}`, body: { role: "user", text: kilobyte } };
    add.run(sessionId, "user", JSON.stringify(body), Date.now());
  };
  const transaction = openTransaction(database);
  transaction(() => {
    for (const [sessionId, messageCount] of sessions) {
      hold.run(sessionId);
      for (let index = 0; index < messageCount; index++) insert(sessionId);
    }
  });
  return {
    append: (sessionId) => transaction(() => insert(sessionId)),
    appendAll: (ids) => transaction(() => ids.forEach(insert)),
    load: async (sessionId) => find.all(sessionId).map(({ body }) => JSON.parse(body) as unknown).length,
    close: async () => void database.close(),
  };
}
