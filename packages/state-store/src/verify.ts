import { callsOf } from "./entry.ts";
import type { Entry } from "./entry.ts";
import type { InputRecord } from "./inbox.ts";
import { canonicalJson, digestOf } from "./json.ts";
import type { SessionRecords } from "./session.ts";
import { joinFacts, sessionFactsOf } from "./session-facts.ts";
import type { SessionFacts } from "./session-facts.ts";
import { titleOf } from "./title.ts";
import type { TurnRecord } from "./turn.ts";

/**
 * One broken rule of one session. `rule` is an invariant id of ARCHITECTURE.md, or `DERIVED`: what is derived from
 * other rows contradicts them, and can be derived anew. `detail` names the rows.
 */
export interface Violation {
  readonly rule: string;
  readonly session: string;
  readonly detail: string;
}

/** A session being verified, entry by entry: none is kept, so that the longest session fits into memory. */
export interface Verification {
  /** The next entry, in order of appending. */
  entry(entry: Entry): void;
  /** What is broken; empty means clean. */
  end(): readonly Violation[];
}

class RecordVerification implements Verification {
  readonly #records: Omit<SessionRecords, "entries">;
  readonly #turns: ReadonlyMap<string, TurnRecord>;
  readonly #summaries: Map<number, number>;
  readonly #archivedThrough: number;
  readonly #violations: Violation[] = [];
  // A call id is unique in its turn only, so both maps are keyed by turn and call.
  readonly #calls = new Map<string, string>();
  readonly #results = new Map<string, number>();
  readonly #keys = new Map<string, number>();
  /** Where each input stands in the transcript. */
  readonly #userEntries = new Map<string, Pick<Entry, "seq" | "turnId">>();
  /** Shown though the model does not read them: not lost. */
  readonly #lateInputIds = new Set<string>();
  #facts: SessionFacts = sessionFactsOf([]);
  #lastSeq = 0;
  #lastToken = 0;

  constructor(records: Omit<SessionRecords, "entries">) {
    this.#records = records;
    this.#turns = new Map(records.turns.map((turn) => [turn.turnId, turn]));
    this.#summaries = new Map(records.summaries.map(({ seq, throughSeq }) => [seq, throughSeq]));
    this.#archivedThrough = Math.max(0, ...this.#summaries.values());
  }

  #report(rule: string, detail: string): void {
    this.#violations.push({ rule, session: this.#records.session.sessionId, detail });
  }

  entry(entry: Entry): void {
    const name = `entry ${entry.key} (seq ${entry.seq})`;
    if (entry.seq <= this.#lastSeq) this.#report("APPEND-2", `${name} does not follow seq ${this.#lastSeq}`);
    this.#lastSeq = entry.seq;
    const twin = this.#keys.get(entry.key);
    if (twin !== undefined) this.#report("APPEND-2", `${name} has the key of the entry at seq ${twin}`);
    this.#keys.set(entry.key, entry.seq);
    if (digestOf(entry.body) !== entry.digest)
      this.#report("APPEND-3", `${name} no longer has the content it was stored with`);
    const turn = this.#turns.get(entry.turnId);
    if (!turn) this.#report("APPEND-2", `${name} belongs to turn ${entry.turnId}, which does not exist`);
    this.#facts = joinFacts(this.#facts, sessionFactsOf([entry]));
    const isSummary = this.#summaries.delete(entry.seq);
    if (entry.late) {
      if (entry.body.role === "user" && entry.body.inputId !== undefined) this.#lateInputIds.add(entry.body.inputId);
      return;
    }
    if (!entry.archived && !isSummary && entry.seq <= this.#archivedThrough)
      this.#report(
        "COMP-1",
        `${name} stands before seq ${this.#archivedThrough}, up to which a summary replaced all, and is not archived`,
      );
    const token = turn?.fencingToken ?? this.#lastToken;
    if (token < this.#lastToken)
      this.#report("LEASE-2", `${name} was written under fencing token ${token}, after one under ${this.#lastToken}`);
    this.#lastToken = Math.max(this.#lastToken, token);
    this.#pair(entry, name);
    if (entry.body.role === "user" && entry.body.inputId !== undefined) this.#userEntry(entry, entry.body.inputId);
  }

  #pair({ body, turnId }: Entry, name: string): void {
    for (const { callId } of callsOf(body)) {
      const key = JSON.stringify([turnId, callId]);
      if (this.#calls.has(key))
        this.#report("PAIR-1", `tool call ${callId} of turn ${turnId} is stored twice: ${name}`);
      this.#calls.set(key, turnId);
    }
    if (body.role !== "tool") return;
    const key = JSON.stringify([turnId, body.callId]);
    if (!this.#calls.has(key))
      this.#report("PAIR-1", `result for tool call ${body.callId} of turn ${turnId} has no call before it: ${name}`);
    this.#results.set(key, (this.#results.get(key) ?? 0) + 1);
  }

  #userEntry({ seq, turnId }: Entry, inputId: string): void {
    const known = this.#userEntries.get(inputId);
    this.#userEntries.set(inputId, known ?? { seq, turnId });
    if (known) this.#report("INBOX-1", `input ${inputId} reached the transcript twice, at seq ${known.seq} and ${seq}`);
  }

  end(): readonly Violation[] {
    for (const [key, turnId] of this.#calls) {
      const count = this.#results.get(key) ?? 0;
      const state = this.#turns.get(turnId)?.state;
      const isOpen = state === "running" || state === "suspended";
      if (count > 1 || (count === 0 && !isOpen)) this.#report("PAIR-1", `tool call ${key} has ${count} results`);
    }
    const inputIds = new Set<string>();
    const places = new Map<number, string>();
    for (const input of this.#records.inputs) {
      const other = places.get(input.seq);
      if (other !== undefined && other !== input.inputId)
        this.#report(
          "INBOX-1",
          `input ${input.inputId} has the place of input ${other} in the queue: seq ${input.seq}`,
        );
      places.set(input.seq, input.inputId);
      if (inputIds.has(input.inputId)) this.#report("INBOX-2", `input ${input.inputId} stands twice`);
      inputIds.add(input.inputId);
      this.#input(input);
    }
    this.#grants();
    this.#compactions();
    // Rows that are broken themselves say nothing of what is derived from them.
    if (this.#violations.length === 0) this.#derived();
    return this.#violations;
  }

  #input(input: InputRecord): void {
    const name = `input ${input.inputId} (seq ${input.seq})`;
    if (digestOf(input.text) !== input.digest)
      this.#report("INBOX-2", `${name} no longer has the text it was accepted with`);
    const turnId = input.state === "pending" ? undefined : input.turnId;
    const said = this.#userEntries.get(input.inputId);
    if (turnId === undefined) {
      if (input.state === "settled" && input.end !== "cancelled" && input.end !== "expired")
        this.#report("INBOX-1", `${name} ended as ${input.end} without a turn`);
      if (said)
        this.#report(
          "INBOX-1",
          `${name} is ${input.state} without a turn, and is in turn ${said.turnId} at seq ${said.seq}`,
        );
      return;
    }
    const turn = this.#turns.get(turnId);
    if (!turn) this.#report("INBOX-1", `${name} was taken by turn ${turnId}, which does not exist`);
    else if (input.state === "taken" && turn.state === "ended")
      this.#report("INBOX-1", `turn ${turnId} ended as ${turn.outcome} and left ${name} unsettled`);
    // What a late entry shows is not lost, and a child's notice is answered by the result of its call.
    if (!said && (this.#lateInputIds.has(input.inputId) || input.child)) return;
    if (!said) this.#report("INBOX-1", `${name} was taken by turn ${turnId}, and its user entry is missing`);
    else if (said.turnId !== turnId)
      this.#report("INBOX-1", `${name} was taken by turn ${turnId}, and is in turn ${said.turnId} at seq ${said.seq}`);
  }

  #grants(): void {
    const { turns, lease, fencingToken } = this.#records;
    for (const turn of turns) {
      if (turn.fencingToken > fencingToken)
        this.#report(
          "LEASE-2",
          `turn ${turn.turnId} has fencing token ${turn.fencingToken}, above the greatest granted (${fencingToken})`,
        );
      if (turn.state === "running" && lease?.fencingToken !== turn.fencingToken)
        this.#report(
          "LEASE-1",
          `turn ${turn.turnId} runs under fencing token ${turn.fencingToken}, which holds no lease`,
        );
      if (turn.state === "suspended" && lease)
        this.#report(
          "LEASE-1",
          `turn ${turn.turnId} waits for answers, and the session is held under fencing token ${lease.fencingToken}`,
        );
    }
    if (this.#turns.size < turns.length) this.#report("LEASE-1", "a turn id stands twice");
    const open = turns.filter((turn) => turn.state !== "ended");
    if (open.length > 1) this.#report("LEASE-1", `turns ${open.map((turn) => turn.turnId).join(" and ")} run at once`);
  }

  #compactions(): void {
    const { summaries, compactionCount } = this.#records;
    for (const [seq, throughSeq] of this.#summaries)
      this.#report("COMP-1", `the summary at seq ${seq}, in place of all up to seq ${throughSeq}, is missing`);
    if (compactionCount < summaries.length)
      this.#report("COMP-1", `${summaries.length} summaries stand in a transcript of ${compactionCount} compactions`);
  }

  #derived(): void {
    const { session, turns } = this.#records;
    const { firstText = "", lastEntry, ...sums } = this.#facts;
    const same = (what: string, stored: unknown, derived: unknown): void => {
      const [is, wanted] = [canonicalJson(stored), canonicalJson(derived)];
      if (is !== wanted)
        this.#report("DERIVED", `the session's row has the ${what} ${is}, and its entries say ${wanted}`);
    };
    // More than there are is right where a recovery could not bring the last: numbers never come round again.
    if (session.entryCount < this.#lastSeq) same("entry count", session.entryCount, this.#lastSeq);
    same("last entry", session.lastEntry, lastEntry);
    same("sums", session.totals, { turnCount: turns.length, ...sums });
    // A title that differs is the one it was given.
    if (session.title === undefined) same("title", "", titleOf(firstText));
  }
}

/** Begins to verify a session whose entries come one by one; see `verifyRecords`. */
export function beginVerification(records: Omit<SessionRecords, "entries">): Verification {
  return new RecordVerification(records);
}

/**
 * Proves the settlement contract on what a store has of a session: every call of an ended turn has one result and no
 * result lacks a call (PAIR-1), every taken input is in the transcript once (a child's
 * notice at most once) and belongs to a turn that runs or settled
 * it (INBOX-1, INBOX-2), fencing tokens only grow from entry to entry (LEASE-2), at most one turn runs and it has the
 * lease (LEASE-1), every entry has the digest it was stored with (APPEND-3), summaries stand where their basis ended
 * (COMP-1), and what is derived is what the entries say (DERIVED). Pure; an empty answer means clean.
 */
export function verifyRecords(records: SessionRecords): readonly Violation[] {
  const verification = beginVerification(records);
  for (const entry of records.entries) verification.entry(entry);
  return verification.end();
}
