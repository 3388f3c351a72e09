/**
 * What a call has read of a session, all of one moment, and what it changes of that. The decisions of the contract are
 * taken on it, synchronously and without I/O, so they may be taken again on a newer one.
 *
 * An image is fresh from the server, or kept from this handle's own last write. On a kept one there is no time, and
 * what it tells may be out of date: its version decides that when it is saved, and no refusal leaves before a fresh
 * image was asked.
 */
import type { BootInstant, EntryBody, LeaseView, ParentCall } from "@turnkeeper/state-store";
import type { CallRow, NewEntryRow } from "./entry-rows.ts";
import type { InputRow, NewInputRow } from "./input-rows.ts";
import { isHeld, leaseView, serverBootId } from "./lease-rows.ts";
import type { LeaseRow, NewLeaseRow } from "./lease-rows.ts";
import type { LoadedSession, SavedSession } from "./loaded-session.ts";
import { ChangedRows } from "./changed-rows.ts";
import { Reading, Unread } from "./session-reading.ts";
import { newSessionRow } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import type { TurnRow } from "./turn-rows.ts";

export class SessionImage {
  readonly sessionId: string;
  version: number;
  readonly receipts: readonly string[];
  readonly reading: Reading;
  readonly #loadedLease: LeaseRow | undefined;
  #time: { readonly clockMs: number; readonly wallMs: number } | undefined;
  #lease: LeaseRow | NewLeaseRow | undefined;
  #session: SessionRow | undefined;
  readonly #turns: ChangedRows<TurnRow>;
  readonly #inputs: ChangedRows<InputRow>;
  readonly #calls: ChangedRows<CallRow>;
  readonly #digests: Map<string, string>;
  readonly #unbegunChildren: readonly string[];
  readonly #lastBodies: readonly string[];
  #others: ReadonlyMap<string, SessionImage> = new Map();
  /** A kept image knows nothing of what is not in it. */
  #isKept = false;

  #putsLease = false;
  #putsSession = false;
  #deletesSession = false;
  readonly #forgottenTurnIds = new Set<string>();
  readonly #offered: NewInputRow[] = [];
  #entries: NewEntryRow[] = [];
  #rings = false;
  #archives: { readonly after_seq: number; readonly through_seq: number } | undefined;

  constructor(sessionId: string, loaded: LoadedSession, reading: Reading) {
    const { version = 0, receipts = [], ...lease } = loaded.lease ?? {};
    this.sessionId = sessionId;
    this.version = version;
    this.receipts = receipts;
    this.reading = reading;
    this.#time = { clockMs: loaded.clock_ms, wallMs: loaded.wall_ms };
    this.#loadedLease = loaded.lease ? (lease as LeaseRow) : undefined;
    this.#lease = this.#loadedLease;
    this.#session = loaded.session ?? undefined;
    this.#turns = new ChangedRows(loaded.turns, (row) => row.turn_id);
    this.#inputs = new ChangedRows(loaded.inputs, (row) => row.input_id);
    this.#calls = new ChangedRows(loaded.calls, (row) => callKey(row.turn_id, row.call_id));
    this.#digests = new Map(Object.entries(loaded.digests ?? {}));
    this.#unbegunChildren = loaded.unbegun_children ?? [];
    this.#lastBodies = loaded.last_bodies ?? [];
  }

  get isKept(): boolean {
    return this.#isKept;
  }

  get #fresh(): { readonly clockMs: number; readonly wallMs: number } {
    if (!this.#time) throw new Unread();
    return this.#time;
  }

  /** The server's clock, by which leases expire. */
  get now(): BootInstant {
    return { bootId: serverBootId, bootMs: this.#fresh.clockMs };
  }

  /** The server's time for people. */
  get atMs(): number {
    return this.#fresh.wallMs;
  }

  /** The same for rows; null on a kept image: then the server says it when it writes. */
  get stamp(): number | null {
    return this.#time?.wallMs ?? null;
  }

  get lease(): LeaseRow | NewLeaseRow | undefined {
    return this.#lease;
  }

  /** How others see the lease as it was read. */
  get leaseView(): LeaseView | undefined {
    return leaseView(this.sessionId, this.#loadedLease, this.now);
  }

  get loadedLease(): LeaseRow | undefined {
    return this.#loadedLease;
  }

  putLease(row: NewLeaseRow): void {
    // The term of a kept image is not known, so it cannot be written again.
    if (this.#isKept && isHeld(row) && !("ttl_from_now" in row)) throw new Unread();
    this.#lease = row;
    this.#putsLease = true;
  }

  get session(): SessionRow | undefined {
    return this.#session;
  }

  /** The session; made as `parent`'s child where it is not there yet. */
  ensureSession(parent?: ParentCall): SessionRow {
    const row = this.#session ?? newSessionRow(this.stamp, parent);
    if (!this.#session) this.putSession(row);
    return row;
  }

  /** The images of other sessions, all of the same moment. */
  join(others: ReadonlyMap<string, SessionImage>): void {
    this.#others = others;
  }

  /** Another session, which is written in the same statement where it is changed. */
  other(sessionId: string): SessionImage {
    if (sessionId === this.sessionId) return this;
    const image = this.#others.get(sessionId);
    if (image) return image;
    this.reading.sessionIds.add(sessionId);
    throw new Unread();
  }

  get changedOthers(): readonly SessionImage[] {
    return [...this.#others.values()].filter((image) => image !== this && image.isChanged);
  }

  /** The children of the running turn that have no turn of their own. */
  get unbegunChildren(): readonly string[] {
    if (this.#isKept) throw new Unread();
    return this.#unbegunChildren;
  }

  /** The last that a turn has said, oldest first: of a child whose parent waits. */
  lastBodies(turnId: string): readonly EntryBody[] {
    if (this.#isKept) throw new Unread();
    const added = this.#entries.filter((row) => row.turn_id === turnId && !row.late).map(({ body }) => body);
    return [...this.#lastBodies.toReversed(), ...added].flatMap(readBody);
  }

  putSession(row: SessionRow): void {
    this.#session = row;
    this.#putsSession = true;
  }

  /** Something about the session changed, though not its transcript. */
  touch(parent?: ParentCall): void {
    const row = this.ensureSession(parent);
    this.putSession({ ...row, updated_at_ms: this.stamp });
  }

  deleteSession(): void {
    this.#session = undefined;
    this.#putsSession = false;
    this.#deletesSession = true;
    for (const rows of [this.#turns, this.#inputs, this.#calls]) rows.leaveAll();
    this.#forgottenTurnIds.clear();
    this.#entries = [];
    this.#offered.length = 0;
  }

  /** The turn that has not ended: it runs, or is suspended. */
  get openTurn(): TurnRow | undefined {
    return this.#turns.all.find((row) => row.outcome === null);
  }

  /** The turn that was begun last, ended or not. */
  get newestTurn(): TurnRow | undefined {
    if (this.#isKept) throw new Unread();
    return this.#turns.all.toSorted((left, right) => (right.turn_no ?? 0) - (left.turn_no ?? 0))[0];
  }

  turn(turnId: string): TurnRow | undefined {
    return this.#turns.row(turnId) ?? this.#unlessUnread(this.reading.turnIds, turnId);
  }

  putTurn(row: TurnRow): void {
    this.#turns.set(row);
  }

  /** Those that have not ended, by their numbers, and those that were asked for. */
  get inputs(): readonly InputRow[] {
    return this.#inputs.all.toSorted((left, right) => left.seq - right.seq);
  }

  input(inputId: string): InputRow | undefined {
    return this.#inputs.row(inputId) ?? this.#unlessUnread(this.reading.inputIds, inputId);
  }

  /** Whether an input of this id is there, or is offered by this call. */
  hasInput(inputId: string): boolean {
    return this.#offered.some((row) => row.input_id === inputId) || this.input(inputId) !== undefined;
  }

  putInput(row: InputRow): void {
    this.#inputs.set(row);
  }

  offer(row: NewInputRow): void {
    this.#offered.push(row);
    this.#inputs.leave(row.input_id);
  }

  #unlessUnread(read: Set<string>, id: string): undefined {
    if (read.has(id) && !this.#isKept) return;
    read.add(id);
    throw new Unread();
  }

  /**
   * The digest of the entry of this key. Of a key that was not asked for it is taken to be none: should there be one
   * after all, the write is refused, and repeated on an image that has it.
   */
  digestOf(key: string): string | undefined {
    this.reading.keys.add(key);
    return this.#digests.get(key);
  }

  /** The same, where nothing would refuse the write: a key that was not read is read first. */
  readDigestOf(key: string): string | undefined {
    return this.#digests.get(key) ?? this.#unlessUnread(this.reading.keys, key);
  }

  addEntry(row: NewEntryRow): void {
    this.#entries.push(row);
    this.#digests.set(row.key, row.digest);
  }

  archive(afterSeq: number, throughSeq: number): void {
    this.#archives = { after_seq: afterSeq, through_seq: throughSeq };
  }

  /** Whoever waits to hear of the session is told in the transaction that stores the rest. */
  ring(): void {
    this.#rings = true;
  }

  /** In the order in which they were made. */
  get calls(): readonly CallRow[] {
    return this.#calls.all.toSorted((left, right) => left.call_no - right.call_no);
  }

  get nextCallNo(): number {
    return 1 + Math.max(0, ...this.#calls.all.map((row) => row.call_no));
  }

  call(turnId: string, callId: string): CallRow | undefined {
    return this.#calls.row(callKey(turnId, callId));
  }

  putCall(row: CallRow): void {
    this.#calls.set(row);
  }

  /** The turn has ended: nothing more can be paired in it. */
  forgetCalls(turnId: string): void {
    for (const row of this.#calls.all) {
      if (row.turn_id !== turnId) continue;
      this.#calls.drop(callKey(turnId, row.call_id));
      this.#forgottenTurnIds.add(turnId);
    }
  }

  get isChanged(): boolean {
    const rowsChange =
      [this.#turns, this.#inputs, this.#calls].some(({ isChanged }) => isChanged) || this.#offered.length > 0;
    return (
      this.#putsLease || this.#putsSession || this.#deletesSession || rowsChange || this.#forgottenTurnIds.size > 0
    );
  }

  /** What `save_session` is given. */
  get changes(): Readonly<Record<string, unknown>> {
    const inputs = [...this.#inputs.changed, ...this.#offered];
    return {
      at_ms: this.stamp,
      session_no: this.#session?.session_no ?? null,
      ...(this.#rings ? { rings: true } : {}),
      ...(this.#putsLease ? { lease: { ...this.#lease, judged_renew_count: this.#judgedRenewCount } } : {}),
      ...(this.#deletesSession ? { is_deleted: true } : {}),
      ...(this.#putsSession ? { session: this.#session } : {}),
      ...(this.#turns.isChanged ? { turns: this.#turns.changed } : {}),
      ...(inputs.length > 0 ? { inputs } : {}),
      ...(this.#archives ? { archives: this.#archives } : {}),
      ...(this.#entries.length > 0 ? { entries: this.#entries } : {}),
      ...(this.#calls.isChanged ? { calls: this.#calls.changed } : {}),
      ...(this.#forgottenTurnIds.size > 0 ? { forgotten_turns: [...this.#forgottenTurnIds] } : {}),
    };
  }

  /**
   * A renewal moves no version. Who takes a lease from its holder has judged its renewals too; a holder that lets go on
   * a kept image need not know how often it renewed.
   */
  get #judgedRenewCount(): number | null {
    return !this.#isKept && isHeld(this.#loadedLease) ? this.#loadedLease.renew_count : null;
  }

  /** What is known once this image is saved, for the next write of the holder; nothing where the holder let go. */
  kept(saved: SavedSession): SessionImage | undefined {
    if (!isHeld(this.#lease) || !this.#session || this.openTurn === undefined) return undefined;
    if (this.#offered.length > 0) return undefined;
    const session = {
      ...this.#session,
      session_no: saved.session_no,
      updated_at_ms: this.#session.updated_at_ms ?? saved.at_ms,
      last_entry_at_ms: this.#session.last_entry_at_ms ?? (this.#session.last_role === null ? null : saved.at_ms),
    };
    const kept = new SessionImage(
      this.sessionId,
      {
        clock_ms: 0,
        wall_ms: 0,
        lease: { ...this.#lease, expires_clock_ms: 0, expires_at_ms: 0, version: saved.version, receipts: [] },
        session,
        turns: this.#turns.all.filter((row) => row.outcome === null),
        inputs: this.#inputs.all.filter((row) => row.ended_as === null),
        calls: this.#calls.all,
        digests: Object.fromEntries(this.#digests),
        unbegun_children: null,
        last_bodies: null,
      },
      new Reading(),
    );
    kept.#time = undefined;
    kept.#isKept = true;
    return kept;
  }
}

/** A body that rotted says nothing, and must not keep its turn from ending. */
function readBody(text: string): readonly EntryBody[] {
  try {
    return [JSON.parse(text) as EntryBody];
  } catch {
    return [];
  }
}

function callKey(turnId: string, callId: string): string {
  return JSON.stringify([turnId, callId]);
}
