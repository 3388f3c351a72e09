/**
 * The state behind the in-memory reference, and the steps that several ports share. Rows are immutable values that
 * are replaced, so nothing a caller was given ever changes under it.
 */
import type { Host } from "@turnkeeper/kernel";
import { wantsTurn } from "../child.ts";
import { firstWaiter, nowOf, standingOf, withPredecessor } from "../decisions.ts";
import type { BootInstant, QueuedInput } from "../decisions.ts";
import { endByStop, resultOfOpenCall } from "../approval.ts";
import { callsOf, takenEntry } from "../entry.ts";
import type { EntryDraft } from "../entry.ts";
import type { Grant, Holder } from "../identity.ts";
import type { InputEnd, PendingInput, TakenInput } from "../inbox.ts";
import { digestOf } from "../json.ts";
import type { HandOver, LeaseView } from "../lease.ts";
import type { SpooledStep } from "../spool.ts";
import type {
  EndedTurn,
  OpenTurn,
  Predecessor,
  RunningTurn,
  SettledTurn,
  StopRequest,
  SuspendedTurn,
} from "../turn.ts";
import { endUnbegunChildren, tellParent } from "./memory-children.ts";
import { callKey } from "./memory-drafts.ts";
import { newSession, storeError } from "./memory-rows.ts";
import type { LeaseRow, SessionRow, TurnEnd } from "./memory-rows.ts";

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
    const row = newSession(sessionId, atMs);
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

  /** How many inputs want a turn. */
  pendingCount(session: SessionRow | undefined): number {
    return this.queueOf(session).filter(({ input }) => wantsTurn(input)).length;
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
    const pendingCount = this.pendingCount(session);
    if (!session || !head) return { pendingCount };
    this.wake(session, head);
    return { pendingCount, head: head.input };
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

  /** The result of a child's call says what its notice would: a turn settles it without taking it in. */
  settleNotice(session: SessionRow, input: PendingInput, turnId: string, end: InputEnd): void {
    session.inputs.set(input.inputId, { record: { ...input, state: "taken", turnId } });
    this.settle(session, input.inputId, end);
  }

  settle(session: SessionRow, inputId: string, end: InputEnd): void {
    const row = session.inputs.get(inputId);
    if (!row || row.record.state === "settled") return;
    const { sessionId, seq, text, digest, delivery, offeredAtMs, child } = row.record;
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
        ...(child ? { child } : {}),
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
  closeTurn(session: SessionRow, turn: OpenTurn, end: TurnEnd): SettledTurn {
    const open = [...session.openCalls.values()].filter((call) => call.turnId === turn.turnId);
    const isSuspended = turn.state === "suspended";
    this.addEntries(
      session,
      turn.turnId,
      open.map((call) =>
        this.#ownDraft(session, {
          key: `${turn.turnId}/${call.callId}/${isSuspended ? "not-run" : "unknown"}`,
          body: resultOfOpenCall(call, turn),
        }),
      ),
    );
    const inputs = this.takenBy(session, turn.turnId);
    for (const input of inputs) this.settle(session, input.inputId, end.outcome);
    endUnbegunChildren(this, session.sessionId, turn.turnId);
    const { sessionId, turnId, fencingToken, holder, startedAtMs, approvals } = turn;
    const ended: EndedTurn = {
      sessionId,
      turnId,
      fencingToken,
      holder,
      startedAtMs,
      ...(approvals ? { approvals } : {}),
      state: "ended",
      outcome: end.outcome,
      ...(end.reason === undefined ? {} : { reason: end.reason }),
      ...(end.detail === undefined ? {} : { detail: end.detail }),
      ...(end.stop === undefined ? {} : { stop: end.stop }),
      ...(end.usage === undefined ? {} : { usage: end.usage }),
      endedAtMs: this.wallMs(),
    };
    session.turns.set(turn.turnId, ended);
    tellParent(this, session, ended);
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

  openTurn(session: SessionRow | undefined): OpenTurn | undefined {
    for (const turn of session?.turns.values() ?? []) if (turn.state !== "ended") return turn;
    return undefined;
  }

  /** The turn has ended itself, and its predecessors' processes before it; with `areLeft` some of them still run. */
  noteProcesses(turn: RunningTurn, areLeft: boolean | undefined): void {
    const { sessionId } = turn;
    if (areLeft) this.predecessors.set(sessionId, withPredecessor(this.predecessors.get(sessionId), turn));
    else this.predecessors.delete(sessionId);
  }

  runningTurn(session: SessionRow | undefined): RunningTurn | undefined {
    const turn = this.openTurn(session);
    return turn?.state === "running" ? turn : undefined;
  }

  suspendedTurn(session: SessionRow | undefined): SuspendedTurn | undefined {
    const turn = this.openTurn(session);
    return turn?.state === "suspended" ? turn : undefined;
  }

  /** The suspended turn goes on under a new grant. */
  resume(session: SessionRow, turn: SuspendedTurn, fencingToken: number, holder: Holder): RunningTurn {
    const { sessionId, turnId, startedAtMs, approvals } = turn;
    const running: RunningTurn = {
      state: "running",
      sessionId,
      turnId,
      fencingToken,
      holder,
      startedAtMs,
      approvals,
    };
    session.turns.set(turnId, running);
    return running;
  }

  /** A stop ends a suspended turn at once: nobody holds it who could. */
  stopSuspended(session: SessionRow, turn: SuspendedTurn, stop: StopRequest): SettledTurn {
    return this.closeTurn(session, turn, endByStop(turn, stop));
  }

  /** Ends a turn whose holder did not: its inputs are interrupted, never silently run again; later grants are told. */
  settleCrashed(sessionId: string): SettledTurn | undefined {
    const session = this.sessions.get(sessionId);
    const turn = this.runningTurn(session);
    if (!session || !turn) return undefined;
    this.noteProcesses(turn, true);
    return this.closeTurn(session, turn, {
      outcome: "interrupted",
      reason: "crashed",
      detail: `The process that ran this turn (pid ${turn.holder.pid}) did not finish it: it ended, or stood still for longer than its lease.`,
    });
  }
}
