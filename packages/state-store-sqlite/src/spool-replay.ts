import { messageOf } from "@turnkeeper/kernel";
import { digestOf, fateOfStep, keyOfSpooled } from "@turnkeeper/state-store";
import type { EntryDraft, SpooledStep } from "@turnkeeper/state-store";
import { addEntries, isPaired, storedDigest } from "./entry-rows.ts";
import { findInput } from "./input-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { closeTurn, noteProcesses, settleInput, settleNotice } from "./settlement.ts";
import type { SpoolFile, SpoolFolder } from "./spool-folder.ts";
import { stepOf } from "./spool-line.ts";
import type { Transaction } from "./transaction.ts";
import { findTurn, turnRecord } from "./turn-rows.ts";

/** Stores an entry that is not there yet. Whatever does not fit the turn is late: a replay refuses nothing. */
function absorbEntry(
  tx: Transaction,
  session: SessionRow,
  { turnId, keptAtMs }: SpooledStep,
  draft: EntryDraft,
  mayJoin: boolean,
): void {
  const { body } = draft;
  const digest = digestOf(body);
  const key = keyOfSpooled({ key: draft.key, digest }, mayJoin, (one) => storedDigest(tx, session, one));
  if (key === undefined) return;
  const joins = key === draft.key && isPaired(tx, session, turnId, body);
  addEntries(tx, session, turnId, [{ key, body, digest }], { atMs: keptAtMs, late: !joins });
}

function absorbStep(tx: Transaction, session: SessionRow, step: SpooledStep): ReturnType<typeof fateOfStep> {
  const { turnId, settledInputs = [], end } = step;
  const row = findTurn(tx, session, turnId);
  const fate = fateOfStep(step, row && turnRecord(session.session_id, row));
  if (fate === "waits") return fate;
  for (const draft of step.entries) absorbEntry(tx, session, step, draft, fate === "joins");
  if (fate === "late") return fate;
  for (const { inputId, end: inputEnd } of settledInputs) {
    const input = findInput(tx, session, inputId);
    const isNotice = input?.child !== null && input?.turn_id === null && input.ended_as === null;
    if (isNotice) settleNotice(tx, session, inputId, turnId, inputEnd);
    else if (input?.turn_id === turnId) settleInput(tx, session, inputId, inputEnd);
  }
  if (end && row) {
    closeTurn(tx, session, row, end);
    noteProcesses(tx, session, row, end.leavesProcesses);
  }
  return fate;
}

/** The replay of one session's spool by one call: its rows in the call's transaction, its files after the commit. */
export class SpoolReplay {
  readonly #folder: SpoolFolder;
  #absorbed: readonly { readonly file: SpoolFile; readonly staying: readonly string[] }[] = [];

  constructor(folder: SpoolFolder) {
    this.#folder = folder;
  }

  /** Joins the session's steps to its turns, oldest first. To be called before anything is settled; may be run again. */
  absorb(tx: Transaction, session: SessionRow): void {
    this.#absorbed = [];
    if (!this.#folder.exists) return;
    const files = this.#claimed(session.session_id);
    if (files.length === 0) return;
    // The files go after the commit, so the commit must wait for the disk.
    tx.requireFull();
    this.#absorbed = files.map((file) => ({
      file,
      staying: file.lines.filter((line) => {
        const step = stepOf(line);
        const isHere = step?.grant.sessionId === session.session_id;
        return !isHere || absorbStep(tx, session, step) === "waits";
      }),
    }));
  }

  /** A spool that cannot be read is said, and refuses nobody the session: what it has comes late then. */
  #claimed(sessionId: string): readonly SpoolFile[] {
    try {
      return this.#folder.claim(sessionId);
    } catch (error) {
      this.#warn("read", error);
      return [];
    }
  }

  /** The transaction is committed: what it took may go. Where that fails it is found again, and known. */
  finish(): void {
    try {
      for (const { file, staying } of this.#absorbed) this.#folder.letGo(file, staying);
    } catch (error) {
      this.#warn("clear", error);
    }
  }

  #warn(attempt: string, error: unknown): void {
    process.emitWarning(`Could not ${attempt} the spool ${this.#folder.path}: ${messageOf(error)}`);
  }
}
