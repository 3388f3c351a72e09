import type { Cancel, Host } from "@turnkeeper/kernel";
import type { Entry, StateStore, TurnRecord } from "@turnkeeper/state-store";
import type { LiveTurns } from "./live-turns.ts";
import { StoredTurn } from "./placed-event.ts";
import type { PlacedEvent } from "./placed-event.ts";
import type { EventPlace, TurnPlace } from "./turn-place.ts";
import { TurnReading } from "./turn-reading.ts";
import type { ToldEvent } from "./turn-reading.ts";

/** Between two looks at the store for turns that run elsewhere; a look is one cheap read. */
const lookEveryMs = 500;
/** The same where no turn is open, once nothing has come for a few looks: thousands of streams may be open and silent. */
const restingLookEveryMs = 2000;
const looksBeforeRest = 10;
const pageSize = 200;
/** Events that wait for a reader who does not read. */
const unreadCountMax = 10_000;

export interface SessionReaderDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly live: Pick<LiveTurns, "listen" | "isLive">;
}

/** Where a reader begins: behind a place, with everything the session has, or with the turn that runs now. */
export type ReaderStart = EventPlace | "everything" | "now";

/**
 * Reads a session's turns as events, one after another, each once: what is stored from the store, what runs in this
 * process as it happens. Both tell the same events, and what was told is not told again, so it does not matter which of
 * them is first, nor which gateway told the beginning.
 */
export class SessionReader {
  readonly #deps: SessionReaderDeps;
  readonly #sessionId: string;
  #reading = new TurnReading(0);
  /** Every entry up to it has been looked at. */
  #seq = 0;
  /** The key of the entry there, which no other session has: one that was deleted and begun anew is another. */
  #seenKey: string | undefined;
  #open: StoredTurn | undefined;
  /** Looks in a row that found nothing, and no turn that may say something. */
  #idleLookCount = 0;
  readonly #live: PlacedEvent[] = [];
  #isClosed = false;
  #wake: () => void = () => {};

  private constructor(deps: SessionReaderDeps, sessionId: string) {
    this.#deps = deps;
    this.#sessionId = sessionId;
  }

  /** Nothing where the place is in a turn, or an input, that the store does not know. */
  static async open(
    deps: SessionReaderDeps,
    sessionId: string,
    start: ReaderStart,
  ): Promise<SessionReader | undefined> {
    const reader = new SessionReader(deps, sessionId);
    const isKnown = await reader.#begin(start);
    return isKnown ? reader : undefined;
  }

  async #begin(start: ReaderStart): Promise<boolean> {
    if (start === "everything") return true;
    if (start === "now") {
      await this.#beginNow();
      return true;
    }
    if (start.kind === "turn") return this.#beginIn(start.turnId, (turn, entries) => behind(start, turn, entries));
    const input = await this.#deps.store.inbox.read(this.#sessionId, start.inputId);
    if (!input) return false;
    if (input.state === "pending" || input.turnId === undefined) {
      await this.#beginNow();
      return true;
    }
    return this.#beginIn(input.turnId, (turn) => new TurnReading(turn.fencingToken - 1));
  }

  /** With the turn that runs, else behind everything. */
  async #beginNow(): Promise<void> {
    const { entries } = await this.#deps.store.transcript.load(this.#sessionId, { all: true, limit: 1 });
    const [running] = await this.#deps.store.turns.running(this.#sessionId);
    const newest = entries.at(-1);
    this.#seq = newest?.seq ?? 0;
    this.#seenKey = newest?.key;
    if (running) {
      await this.#beginIn(running.turn.turnId, (turn) => new TurnReading(turn.fencingToken - 1));
      return;
    }
    const last = newest && (await this.#deps.store.turns.read(this.#sessionId, newest.turnId));
    // Of a late entry's turn the token is an old one; newer turns then say nothing here, or say it all.
    if (last) this.#reading = new TurnReading(last.fencingToken);
  }

  async #beginIn(
    turnId: string,
    readingOf: (turn: TurnRecord, entries: readonly Entry[]) => TurnReading,
  ): Promise<boolean> {
    const turn = await this.#deps.store.turns.read(this.#sessionId, turnId);
    if (!turn) return false;
    const { entries } = await this.#deps.store.transcript.load(this.#sessionId, { all: true, turnId });
    this.#reading = readingOf(turn, entries);
    const first = entries.find(({ late }) => !late);
    // Without an entry there is nothing to come back to: what is newer is found by its token.
    if (first) this.#seq = first.seq - 1;
    if (first) this.#seenKey = undefined;
    return true;
  }

  /** Ends when it is closed, or the session is deleted: whoever comes back is told that it is not there, or begins anew. */
  async *events(): AsyncGenerator<ToldEvent, void> {
    const { live } = this.#deps;
    using _listening = live.listen(this.#sessionId, {
      look: () => this.look(),
      take: (placed) => {
        // Whoever does not read on while the turn goes on comes back later: then all of it is in the store.
        if (this.#live.push(placed) > unreadCountMax) this.#isClosed = true;
        this.#wake();
      },
    });
    while (!this.#isClosed) {
      // A turn that began here began behind everything that ended elsewhere, and that is stored by then.
      const mayBeTold = this.#live.length;
      const seqBefore = this.#seq;
      yield* this.#stored();
      this.#idleLookCount = this.#open || this.#seq > seqBefore ? 0 : this.#idleLookCount + 1;
      yield* this.#said(mayBeTold);
      await this.#untilMore();
      while (this.#mayGoOn) {
        yield* this.#said(0);
        await this.#untilMore();
      }
    }
  }

  /** Something was said, and it is no beginning: the store need not be asked what came before. */
  get #mayGoOn(): boolean {
    const next = this.#live[0];
    return !this.#isClosed && next !== undefined && next.event.type !== "turn.started";
  }

  /** While a turn runs here, until it says something; else until it is time to look again at the store. */
  async #untilMore(): Promise<void> {
    if (this.#live.length > 0 || this.#isClosed) return;
    const everyMs = this.#idleLookCount > looksBeforeRest ? restingLookEveryMs : lookEveryMs;
    await this.#pause(this.#deps.live.isLive(this.#sessionId) ? undefined : everyMs);
  }

  /** Looks at the store now, not only when it is time to. */
  look(): void {
    this.#wake();
  }

  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  /** Tells so many of what was said, and then what follows up to the next beginning. */
  *#said(count: number): Generator<ToldEvent> {
    for (let index = 0; this.#live[0] && (index < count || this.#live[0].event.type !== "turn.started"); index++)
      yield* this.#tell(this.#live.shift());
  }

  *#tell(placed: PlacedEvent | undefined): Generator<ToldEvent> {
    const told = placed && this.#reading.take(placed);
    if (told) yield told;
  }

  async *#stored(): AsyncGenerator<ToldEvent, void> {
    for (;;) {
      // Before its entries: of a turn that had ended by then, all are among them.
      const open = this.#open;
      if (open && !(await this.#update(open))) return this.close();
      const entries = await this.#next();
      if (!entries) return this.close();
      for (const entry of entries) {
        yield* this.#storedOf(entry);
        this.#seq = entry.seq;
        this.#seenKey = entry.key;
      }
      if (entries.length === pageSize || this.#open !== open) continue;
      yield* this.#restOf(open);
      return;
    }
  }

  /** A page of entries that were not looked at; nothing where the one that was looked at last is gone. */
  async #next(): Promise<readonly Entry[] | undefined> {
    // The last one comes with them: what it is now is read at the same moment.
    const seenCount = this.#seenKey === undefined ? 0 : 1;
    const window = { all: true, afterSeq: this.#seq - seenCount, first: pageSize + seenCount };
    const { entries } = await this.#deps.store.transcript.load(this.#sessionId, window);
    if (seenCount === 0) return entries;
    const [seen, ...rest] = entries;
    return seen?.seq === this.#seq && seen.key === this.#seenKey ? rest : undefined;
  }

  async *#storedOf(entry: Entry): AsyncGenerator<ToldEvent, void> {
    if (entry.late) return;
    if (entry.turnId !== this.#open?.turnId) {
      // Another turn has begun since: the one before has ended, and this is behind the last of it.
      if (this.#open && (await this.#update(this.#open))) yield* this.#restOf(this.#open);
      const turn = await this.#deps.store.turns.read(this.#sessionId, entry.turnId);
      if (!turn) return;
      this.#open = new StoredTurn(turn);
      yield* this.#tell(this.#open.begun());
    }
    for (const placed of this.#open.of(entry)) yield* this.#tell(placed);
  }

  /** False where the turn is not in the store any more, nor its session. */
  async #update(open: StoredTurn): Promise<boolean> {
    const turn = await this.#deps.store.turns.read(this.#sessionId, open.turnId);
    if (turn) open.update(turn);
    return turn !== undefined;
  }

  /** What stands behind the entries of a turn: what it waits for, how it ended. */
  *#restOf(open: StoredTurn | undefined): Generator<ToldEvent> {
    if (!open) return;
    for (const question of open.questions()) yield* this.#tell(question);
    // The end of a turn that runs here is told here, behind the last of what it said.
    const ended = this.#deps.live.isLive(this.#sessionId, open.turnId) ? undefined : open.ended();
    if (!ended) return;
    this.#open = undefined;
    yield* this.#tell(ended);
  }

  async #pause(ms: number | undefined): Promise<void> {
    let cancel: Cancel = () => {};
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (ms !== undefined) cancel = this.#deps.host.timers.after(ms, resolve, { keepAlive: false });
    });
    cancel();
    this.#wake = () => {};
  }
}

/**
 * Begins behind a place that a client named. What it was told and the ended turn does not have came of an attempt that
 * was made again, or died with its process: it stands before nothing.
 */
function behind(place: TurnPlace, turn: TurnRecord, entries: readonly Entry[]): TurnReading {
  if (turn.state === "running") return new TurnReading(turn.fencingToken, place);
  const stored = new StoredTurn(turn);
  for (const entry of entries) stored.skip(entry);
  const textLength = Math.min(place.textLength, stored.textLength);
  const reasoningLength = Math.min(place.reasoningLength, stored.reasoningLength);
  return new TurnReading(turn.fencingToken, { ...place, textLength, reasoningLength });
}
