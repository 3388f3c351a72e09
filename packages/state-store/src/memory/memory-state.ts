/**
 * The state behind the in-memory reference, and the steps that several ports share. Rows are immutable values that
 * are replaced, so nothing a caller was given ever changes under it.
 */
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { CompactionHealth } from "../compaction-health.ts";
import { firstWaiter, nowOf, standingOf, withPredecessor } from "../decisions.ts";
import type { BootInstant, QueuedInput } from "../decisions.ts";
import { callsOf, takenEntry, unknownOutcome } from "../entry.ts";
import type { Entry, EntryDraft } from "../entry.ts";
import type { StoreErrorCode } from "../errors.ts";
import type { Grant, Holder } from "../identity.ts";
import type { InputEnd, InputRecord, TakenInput } from "../inbox.ts";
import { digestOf } from "../json.ts";
import type { HandOver, LeaseView } from "../lease.ts";
import type { SpooledStep } from "../spool.ts";
import type {
  EndedTurn,
  Predecessor,
  RunningTurn,
  SettledTurn,
  StopRequest,
  TurnOutcome,
  TurnRecord,
} from "../turn.ts";
import type { Usage } from "../entry.ts";

export interface LeaseRow {
  readonly fencingToken: number;
  /** Absent: free. The row itself is never deleted, or the token would start again (LEASE-2). */
  readonly held?: {
    readonly holder: Holder;
    readonly ttlMs: number;
    readonly renewCount: number;
    readonly expires: BootInstant;
    readonly acquiredAtMs: number;
    readonly expiresAtMs: number;
  };
}

export interface InputRow {
  readonly record: InputRecord;
  readonly wokenAt?: BootInstant;
}

interface OpenCall {
  readonly turnId: string;
  readonly callId: string;
  readonly name: string;
}

export interface SessionRow {
  readonly sessionId: string;
  readonly createdAtMs: number;
  updatedAtMs: number;
  revision: number;
  compactionCount: number;
  compactionHealth: CompactionHealth | undefined;
  lastSeq: number;
  readonly entries: Entry[];
  /** Where each entry stands among those of all sessions, by its index: the order in which they were stored. */
  readonly storedNos: number[];
  /** What it was named; empty: not at all. */
  givenTitle: string;
  /** Where a summary stands among the entries: at the end of what it replaced. */
  readonly summaryPlace: Map<string, number>;
  readonly digestByKey: Map<string, string>;
  readonly openCalls: Map<string, OpenCall>;
  readonly inputs: Map<string, InputRow>;
  readonly turns: Map<string, TurnRecord>;
}

export interface TurnEnd {
  readonly outcome: TurnOutcome;
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  readonly stop?: StopRequest | undefined;
  readonly usage?: Usage | undefined;
}

export function storeError(
  code: StoreErrorCode,
  message: string,
  context: Record<string, unknown> = {},
): CodedError<StoreErrorCode> {
  return new CodedError(code, message, { context });
}

const callKey = (turnId: string, callId: string): string => JSON.stringify([turnId, callId]);

export class MemoryState {
  readonly sessions: Map<string, SessionRow> = new Map();
  readonly leases: Map<string, LeaseRow> = new Map();
  /** The turns of each session that did not end themselves since the last that did; they outlive the session. */
  readonly predecessors: Map<string, readonly Predecessor[]> = new Map();
  /** What waits of each session, oldest first. */
  readonly spool: Map<string, readonly SpooledStep[]> = new Map();
  lastInputSeq = 0;
  #lastStoredNo = 0;
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  nextStoredNo(): number {
    return ++this.#lastStoredNo;
  }

  now(): BootInstant {
    return nowOf(this.#host.clock);
  }

  wallMs(): number {
    return this.#host.clock.wallMs();
  }

  ensureSession(sessionId: string, atMs: number = this.wallMs()): SessionRow {
    const known = this.sessions.get(sessionId);
    if (known) return known;
    const row: SessionRow = {
      sessionId,
      createdAtMs: atMs,
      updatedAtMs: atMs,
      revision: 0,
      compactionCount: 0,
      compactionHealth: undefined,
      lastSeq: 0,
      entries: [],
      storedNos: [],
      givenTitle: "",
      summaryPlace: new Map(),
      digestByKey: new Map(),
      openCalls: new Map(),
      inputs: new Map(),
      turns: new Map(),
    };
    this.sessions.set(sessionId, row);
    return row;
  }

  leaseView(sessionId: string): LeaseView | undefined {
    const row = this.leases.get(sessionId);
    if (!row?.held) return undefined;
    const { holder, ttlMs, renewCount, expires, acquiredAtMs, expiresAtMs } = row.held;
    return {
      sessionId,
      holder,
      fencingToken: row.fencingToken,
      ttlMs,
      renewCount,
      ...standingOf(expires, this.now()),
      acquiredAtMs,
      expiresAtMs,
    };
  }

  /** The guard of every write: the grant stands as long as nobody else was granted, expired or not. */
  grantStands(grant: Grant): boolean {
    const row = this.leases.get(grant.sessionId);
    return row?.held?.holder.holderId === grant.holderId && row.fencingToken === grant.fencingToken;
  }

  queueOf(session: SessionRow | undefined): QueuedInput[] {
    const queue: QueuedInput[] = [];
    for (const { record, wokenAt } of session?.inputs.values() ?? []) {
      if (record.state === "pending") queue.push(wokenAt ? { input: record, wokenAt } : { input: record });
    }
    return queue.toSorted((left, right) => left.input.seq - right.input.seq);
  }

  /** Starts a waiter's claim period, unless it is already running. */
  wake(session: SessionRow, queued: QueuedInput): void {
    const now = this.now();
    if (queued.wokenAt?.bootId === now.bootId) return;
    session.inputs.set(queued.input.inputId, { record: queued.input, wokenAt: now });
  }

  free(sessionId: string): void {
    const row = this.leases.get(sessionId);
    if (row) this.leases.set(sessionId, { fencingToken: row.fencingToken });
  }

  handOver(sessionId: string): HandOver {
    const session = this.sessions.get(sessionId);
    const queue = this.queueOf(session);
    const head = firstWaiter(queue, this.now());
    if (!session || !head) return { pendingCount: queue.length };
    this.wake(session, head);
    return { pendingCount: queue.length, head: head.input };
  }

  /** The drafts that are not stored yet, each key once; rejects with `ENTRY_CONFLICT` on a key with other content. */
  unknownDrafts(session: SessionRow, drafts: readonly EntryDraft[]): EntryDraft[] {
    const inThisStep = new Map<string, string>();
    return drafts.filter((draft) => {
      const digest = digestOf(draft.body);
      const known = session.digestByKey.get(draft.key) ?? inThisStep.get(draft.key);
      inThisStep.set(draft.key, digest);
      if (known === undefined) return true;
      if (known === digest) return false;
      throw storeError(
        "ENTRY_CONFLICT",
        `Entry ${draft.key} of session ${session.sessionId} is stored with other content.`,
        { key: draft.key },
      );
    });
  }

  /** Refuses calls and results that would break the pairing, before anything is written (PAIR-1). */
  checkPairing(session: SessionRow, turnId: string, drafts: readonly EntryDraft[]): void {
    const fault = this.pairingFault(session, turnId, drafts);
    if (fault) throw storeError("STORE_CONTRACT", fault.problem, { callId: fault.callId });
  }

  /** What would break the pairing of the turn's calls and results; nothing where all of it pairs. */
  pairingFault(
    session: SessionRow,
    turnId: string,
    drafts: readonly EntryDraft[],
  ): { readonly callId: string; readonly problem: string } | undefined {
    const open = new Set(session.openCalls.keys());
    const opened = new Set(
      session.entries
        .filter((entry) => entry.turnId === turnId && !entry.late)
        .flatMap((entry) => callsOf(entry.body).map((call) => call.callId)),
    );
    for (const { body } of drafts) {
      for (const { callId } of callsOf(body)) {
        if (opened.has(callId)) return { callId, problem: `Tool call ${callId} is stored twice in turn ${turnId}.` };
        opened.add(callId);
        open.add(callKey(turnId, callId));
      }
      if (body.role !== "tool" || open.delete(callKey(turnId, body.callId))) continue;
      const { callId } = body;
      return { callId, problem: `A result for tool call ${callId} of turn ${turnId} has no open call.` };
    }
    return undefined;
  }

  addEntries(
    session: SessionRow,
    turnId: string,
    drafts: readonly EntryDraft[],
    { atMs = this.wallMs(), late = false }: { readonly atMs?: number; readonly late?: boolean } = {},
  ): void {
    for (const draft of drafts) {
      const body = structuredClone(draft.body);
      const digest = digestOf(body);
      session.lastSeq++;
      session.entries.push({
        key: draft.key,
        body,
        seq: session.lastSeq,
        turnId,
        digest,
        atMs,
        archived: false,
        late,
      });
      session.storedNos.push(this.nextStoredNo());
      session.digestByKey.set(draft.key, digest);
      if (late) continue;
      for (const { callId, name } of callsOf(body))
        session.openCalls.set(callKey(turnId, callId), { turnId, callId, name });
      if (body.role === "tool") session.openCalls.delete(callKey(turnId, body.callId));
    }
    if (drafts.length > 0) this.changed(session);
  }

  changed(session: SessionRow): void {
    session.revision++;
    session.updatedAtMs = this.wallMs();
  }

  /** A draft of the store's own is stored whatever happens: a key that somebody used already gets a number. */
  #ownDraft(session: SessionRow, { key: wanted, body }: EntryDraft): EntryDraft {
    let key = wanted;
    for (let number = 2; session.digestByKey.has(key); number++) key = `${wanted}/${number}`;
    return { key, body };
  }

  /** Gives a pending input to a turn; its text joins the transcript in the same step, so a taken message is never lost. */
  take(session: SessionRow, inputId: string, turnId: string): TakenInput {
    const row = session.inputs.get(inputId);
    if (row?.record.state !== "pending")
      throw storeError("STORE_CONTRACT", `Input ${inputId} is not pending.`, { inputId });
    const { runner: _runner, ...facts } = row.record;
    const record: TakenInput = { ...facts, state: "taken", turnId };
    session.inputs.set(inputId, { record });
    this.addEntries(session, turnId, [this.#ownDraft(session, takenEntry(record))]);
    return record;
  }

  settle(session: SessionRow, inputId: string, end: InputEnd): void {
    const row = session.inputs.get(inputId);
    if (!row || row.record.state === "settled") return;
    const { sessionId, seq, text, digest, delivery, offeredAtMs } = row.record;
    const turn = row.record.state === "taken" ? { turnId: row.record.turnId } : {};
    session.inputs.set(inputId, {
      record: {
        sessionId,
        inputId,
        seq,
        text,
        digest,
        delivery,
        offeredAtMs,
        state: "settled",
        ...turn,
        end,
        endedAtMs: this.wallMs(),
      },
    });
    session.updatedAtMs = this.wallMs();
  }

  takenBy(session: SessionRow, turnId: string): TakenInput[] {
    return [...session.inputs.values()].flatMap(({ record }) =>
      record.state === "taken" && record.turnId === turnId ? [record] : [],
    );
  }

  /** Closes whatever the turn left open, in the one order that keeps PAIR-1 and INBOX-1: results, inputs, turn. */
  closeTurn(session: SessionRow, turn: RunningTurn, end: TurnEnd): SettledTurn {
    const open = [...session.openCalls.values()].filter((call) => call.turnId === turn.turnId);
    this.addEntries(
      session,
      turn.turnId,
      open.map((call) =>
        this.#ownDraft(session, { key: `${turn.turnId}/${call.callId}/unknown`, body: unknownOutcome(call) }),
      ),
    );
    const inputs = this.takenBy(session, turn.turnId);
    for (const input of inputs) this.settle(session, input.inputId, end.outcome);
    const { stop: _stop, ...facts } = turn;
    const ended: EndedTurn = {
      ...facts,
      state: "ended",
      outcome: end.outcome,
      ...(end.reason === undefined ? {} : { reason: end.reason }),
      ...(end.detail === undefined ? {} : { detail: end.detail }),
      ...(end.stop === undefined ? {} : { stop: end.stop }),
      ...(end.usage === undefined ? {} : { usage: end.usage }),
      endedAtMs: this.wallMs(),
    };
    session.turns.set(turn.turnId, ended);
    return {
      turn: ended,
      inputIds: inputs.map((input) => input.inputId),
      openCallIds: open.map((call) => call.callId),
    };
  }

  /** The running turn that a write joins. Ask after the token: to a late holder a turn that is gone is a race, not a bug. */
  runningIn(sessionId: string, turnId: string): { readonly session: SessionRow; readonly turn: RunningTurn } {
    const session = this.sessions.get(sessionId);
    const turn = session?.turns.get(turnId);
    if (session && turn?.state === "running") return { session, turn };
    const what = turn ? "has ended" : "was never begun";
    throw storeError("STORE_CONTRACT", `Turn ${turnId} of session ${sessionId} ${what}: nothing can join it.`, {
      turnId,
    });
  }

  runningTurn(session: SessionRow | undefined): RunningTurn | undefined {
    for (const turn of session?.turns.values() ?? []) if (turn.state === "running") return turn;
    return undefined;
  }

  /** Ends a turn whose holder did not: its inputs are interrupted, never silently run again; later grants are told. */
  settleCrashed(sessionId: string): SettledTurn | undefined {
    const session = this.sessions.get(sessionId);
    const turn = this.runningTurn(session);
    if (!session || !turn) return undefined;
    this.predecessors.set(sessionId, withPredecessor(this.predecessors.get(sessionId), turn));
    return this.closeTurn(session, turn, {
      outcome: "interrupted",
      reason: "crashed",
      detail: `The process that ran this turn (pid ${turn.holder.pid}) did not finish it: it ended, or stood still for longer than its lease.`,
    });
  }
}
