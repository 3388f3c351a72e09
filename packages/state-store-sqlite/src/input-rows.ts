import type {
  BootInstant,
  ChildEnd,
  Delivery,
  InputEnd,
  InputRecord,
  JsonValue,
  PendingInput,
  QueuedInput,
  Runner,
  TakenInput,
} from "@turnkeeper/state-store";
import { parseJson, toJson } from "./json-column.ts";
import type { SessionRow } from "./session-rows.ts";
import type { Transaction } from "./transaction.ts";

export interface InputRow {
  readonly input_no: number;
  readonly input_id: string;
  readonly seq: number;
  readonly text: string;
  readonly digest: string;
  readonly delivery: Delivery;
  readonly offered_at_ms: number;
  readonly runner: string | null;
  readonly woken_boot_id: string | null;
  readonly woken_boot_ms: number | null;
  readonly turn_id: string | null;
  readonly ended_as: InputEnd | null;
  readonly ended_at_ms: number | null;
  readonly child: string | null;
  readonly settings: string | null;
}

function facts(sessionId: string, row: InputRow): Omit<TakenInput, "state" | "turnId"> {
  return {
    sessionId,
    inputId: row.input_id,
    seq: row.seq,
    text: row.text,
    digest: row.digest,
    delivery: row.delivery,
    offeredAtMs: row.offered_at_ms,
    ...(row.child === null ? {} : { child: parseJson<ChildEnd>(row.child, "input.child") }),
    ...(row.settings === null ? {} : { settings: parseJson<JsonValue>(row.settings, "input.settings") }),
  };
}

export function takenInput(sessionId: string, row: InputRow, turnId: string): TakenInput {
  return { ...facts(sessionId, row), state: "taken", turnId };
}

export function pendingInput(sessionId: string, row: InputRow): PendingInput {
  const runner = row.runner === null ? {} : { runner: parseJson<Runner>(row.runner, "input.runner") };
  return { ...facts(sessionId, row), state: "pending", ...runner };
}

export function inputRecord(sessionId: string, row: InputRow): InputRecord {
  if (row.ended_as !== null && row.ended_at_ms !== null) {
    const turn = row.turn_id === null ? {} : { turnId: row.turn_id };
    return { ...facts(sessionId, row), state: "settled", ...turn, end: row.ended_as, endedAtMs: row.ended_at_ms };
  }
  return row.turn_id === null ? pendingInput(sessionId, row) : takenInput(sessionId, row, row.turn_id);
}

export function findInput(tx: Transaction, session: SessionRow, inputId: string): InputRow | undefined {
  return tx.rows.get<InputRow>(
    "SELECT * FROM input WHERE session_no = ? AND input_id = ?",
    session.session_no,
    inputId,
  );
}

/** Every pending input of the session, oldest first. */
export function queueOf(tx: Transaction, session: SessionRow): QueuedInput[] {
  const rows = tx.rows.all<InputRow>(
    "SELECT * FROM input WHERE session_no = ? AND turn_id IS NULL AND ended_as IS NULL ORDER BY seq",
    session.session_no,
  );
  return rows.map((row) => {
    const input = pendingInput(session.session_id, row);
    if (row.woken_boot_id === null || row.woken_boot_ms === null) return { input };
    return { input, wokenAt: { bootId: row.woken_boot_id, bootMs: row.woken_boot_ms } };
  });
}

/** How many pending inputs want a turn. */
export function pendingCount(tx: Transaction, session: SessionRow): number {
  const row = tx.rows.get<{ count: number }>(
    "SELECT count(*) AS count FROM input WHERE session_no = ? AND turn_id IS NULL AND ended_as IS NULL AND child IS NULL",
    session.session_no,
  );
  return row?.count ?? 0;
}

/** What the turn holds, in the order in which the inputs first came. */
export function takenBy(tx: Transaction, session: SessionRow, turnId: string): TakenInput[] {
  return tx.rows
    .all<InputRow>(
      "SELECT * FROM input WHERE session_no = ? AND turn_id = ? AND ended_as IS NULL ORDER BY input_no",
      session.session_no,
      turnId,
    )
    .map((row) => takenInput(session.session_id, row, turnId));
}

/** Stores an input under the next number of the queue; an id whose input never reached a turn is used again. */
export function offerInput(
  tx: Transaction,
  session: SessionRow,
  input: Pick<PendingInput, "inputId" | "text" | "digest" | "delivery" | "runner" | "child" | "settings">,
): PendingInput {
  const { inputId, text, digest, delivery, runner, child, settings } = input;
  tx.rows.run("UPDATE store SET last_input_seq = last_input_seq + 1");
  const seq = tx.rows.get<{ seq: number }>("SELECT last_input_seq AS seq FROM store")?.seq ?? 0;
  tx.rows.run(
    `INSERT INTO input (session_no, input_id, seq, text, digest, delivery, offered_at_ms, runner_id, runner, child,
       settings)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (session_no, input_id) DO UPDATE SET
       seq = excluded.seq, text = excluded.text, digest = excluded.digest, delivery = excluded.delivery,
       offered_at_ms = excluded.offered_at_ms, runner_id = excluded.runner_id, runner = excluded.runner,
       child = excluded.child, settings = excluded.settings, ended_as = NULL, ended_at_ms = NULL`,
    session.session_no,
    inputId,
    seq,
    text,
    digest,
    delivery,
    tx.atMs,
    runner?.runnerId ?? null,
    runner ? JSON.stringify(runner) : null,
    toJson(child),
    toJson(settings),
  );
  return {
    sessionId: session.session_id,
    inputId,
    seq,
    text,
    digest,
    delivery,
    offeredAtMs: tx.atMs,
    ...(child ? { child } : {}),
    ...(settings === undefined ? {} : { settings }),
    state: "pending",
    ...(runner ? { runner } : {}),
  };
}

/** Gives an orphan a runner of its own, who then answers for it. */
export function adoptInput(tx: Transaction, session: SessionRow, inputId: string, runner: Runner): void {
  tx.rows.run(
    `UPDATE input SET delivery = 'turn', runner_id = ?, runner = ?, woken_boot_id = NULL, woken_boot_ms = NULL
     WHERE session_no = ? AND input_id = ?`,
    runner.runnerId,
    JSON.stringify(runner),
    session.session_no,
    inputId,
  );
}

/** Makes orphans of what this runner was to run, or of one input of it; they keep their places. */
export function orphanInputs(tx: Transaction, session: SessionRow, runnerId: string, inputId?: string): number {
  return tx.rows.run(
    `UPDATE input SET runner_id = NULL, runner = NULL, woken_boot_id = NULL, woken_boot_ms = NULL
     WHERE session_no = ? AND turn_id IS NULL AND ended_as IS NULL AND runner_id = ? AND input_id = coalesce(?, input_id)`,
    session.session_no,
    runnerId,
    inputId ?? null,
  );
}

/** Starts a waiter's claim period, unless it is already running. */
export function wakeInput(tx: Transaction, session: SessionRow, queued: QueuedInput): void {
  const now: BootInstant = tx.now;
  if (queued.wokenAt?.bootId === now.bootId) return;
  tx.rows.run(
    "UPDATE input SET woken_boot_id = ?, woken_boot_ms = ? WHERE session_no = ? AND input_id = ?",
    now.bootId,
    now.bootMs,
    session.session_no,
    queued.input.inputId,
  );
}

/** Whoever was woken and lost the race has a whole claim period again the next time. */
export function forgetWakeUps(tx: Transaction, session: SessionRow): void {
  tx.rows.run(
    `UPDATE input SET woken_boot_id = NULL, woken_boot_ms = NULL
     WHERE session_no = ? AND turn_id IS NULL AND ended_as IS NULL AND woken_boot_id IS NOT NULL`,
    session.session_no,
  );
}

export function markTaken(tx: Transaction, session: SessionRow, inputId: string, turnId: string): void {
  tx.rows.run(
    `UPDATE input SET turn_id = ?, runner_id = NULL, runner = NULL, woken_boot_id = NULL, woken_boot_ms = NULL
     WHERE session_no = ? AND input_id = ?`,
    turnId,
    session.session_no,
    inputId,
  );
}

/** Ends an input for good; one that has ended stays as it is (INBOX-1). Answers whether it had not. */
export function markSettled(tx: Transaction, session: SessionRow, inputId: string, end: InputEnd): boolean {
  const changes = tx.rows.run(
    `UPDATE input SET ended_as = ?, ended_at_ms = ?, settings = NULL, runner_id = NULL, runner = NULL,
       woken_boot_id = NULL, woken_boot_ms = NULL
     WHERE session_no = ? AND input_id = ? AND ended_as IS NULL`,
    end,
    tx.atMs,
    session.session_no,
    inputId,
  );
  return changes === 1;
}
