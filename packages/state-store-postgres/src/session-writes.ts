/**
 * How a session is written: read, decided, stored. What a call decides on is one image of the session, and what it
 * stores is one statement that is refused where the session is no longer at the image's version. No transaction and no
 * lock spans two round trips, so a client that stands still holds up nobody; a holder that knows its session from its
 * own last write reads nothing, and its step is one round trip.
 *
 * Keeps APPEND-3 over a lost connection: each attempt has a name, which is stored with what it wrote. Where an answer
 * is lost, the session's next image tells by the names whether it was written.
 *
 * | saving answers | then |
 * | --- | --- |
 * | a version | it is committed, and the next call may begin from it |
 * | nothing: the version had moved on | a fresh image, decided anew |
 * | that its queue of notifications is full | a fresh image, decided anew, which wakes nobody: waiters look |
 * | the key of an entry is there already | a fresh image with that key, decided anew |
 * | nothing at all | a fresh image; with the attempt's name: its answer; without: decided anew |
 * | the names reach no longer back to it | decided anew where that is harmless; else STORE_IO: it is not known whether it was written |
 *
 * The calls of one session are run in order. Locks: the row of `lease` first, and then rows of that session alone; a
 * statement has one session, so two cannot wait for each other.
 */
import type { Random } from "@turnkeeper/kernel";
import type { ResolvedPostgresStoreOptions } from "./options.ts";
import type { LoadedSession, SavedSession } from "./loaded-session.ts";
import { SessionImage } from "./session-image.ts";
import { Reading, Unread } from "./session-reading.ts";
import { patience, StatementFailed } from "./server.ts";
import type { Server } from "./server.ts";
import { closedError, codeOf, constraintOf, storeError } from "./store-failure.ts";

/** So many sessions are remembered from their last write; a holder beyond them reads before it writes. */
const keptMax = 256;

/** A row is locked for a few milliseconds. Whoever waits longer goes away, and comes back. */
const lockTimeout = "4s";

/** As many names of writes as a session's row keeps. */
const receiptsMax = 8;

/** With others writing the session all the time, so many are let pass before pauses are made. */
const eagerTries = 4;

export interface SessionCall<T> {
  readonly sessionId: string;
  /** Says what was attempted: "append to session s1". */
  readonly attempt: string;
  readonly kind: "turn-data" | "ordinary";
  /**
   * Deciding it again on what an attempt of it has written ends in the same state, and answers what stands: its ids
   * tell. Not said of what takes or deletes whatever it finds, nor of an input, which may be withdrawn in between.
   */
  readonly isRepeatable?: true;
  /** What it will ask for, where that is known before. */
  readonly reading?: Partial<Record<"keys" | "turnIds" | "inputIds", readonly string[]>>;
  /** Decides on an image and changes nothing else, so it may be run again. */
  decide(image: SessionImage): T | Numbered<T>;
}

/** An answer that has the number of the input in it that was offered. */
export class Numbered<T> {
  readonly inputId: string;
  readonly answer: (seq: number) => T;

  constructor(inputId: string, answer: (seq: number) => T) {
    this.inputId = inputId;
    this.answer = answer;
  }
}

/** What was sent under a name, and would have been the answer. */
interface Attempt<T> {
  readonly version: number;
  readonly answer: T | Numbered<T>;
}

type Saved = { readonly kind: "saved"; readonly saved: SavedSession } | { readonly kind: "again" };

export class SessionWrites {
  readonly #server: Server;
  readonly #random: Pick<Random, "id" | "unit">;
  readonly #runnerTtlMs: number;
  readonly #kept = new Map<string, SessionImage>();
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(
    server: Server,
    { runnerTtlMs }: Pick<ResolvedPostgresStoreOptions, "runnerTtlMs">,
    random: Pick<Random, "id" | "unit">,
  ) {
    this.#server = server;
    this.#runnerTtlMs = runnerTtlMs;
    this.#random = random;
  }

  /** Runs the call behind those of its session that came before. */
  async write<T>(call: SessionCall<T>): Promise<T> {
    const { sessionId } = call;
    if (this.#server.isClosed) throw closedError(this.#server.shown);
    const before = this.#last.get(sessionId) ?? Promise.resolve();
    const own = before.then(() => this.#run(call));
    const settled = own.catch(() => undefined);
    this.#last.set(sessionId, settled);
    await settled;
    if (this.#last.get(sessionId) === settled) this.#last.delete(sessionId);
    return own;
  }

  #run<T>(call: SessionCall<T>): Promise<T> {
    const { attempt, kind } = call;
    const run = new CallRun(call, this.#random.id());
    return this.#server.patiently(attempt, patience[kind], async () => {
      try {
        return await this.#decided(run);
      } catch (error) {
        // Whatever fails now, an earlier attempt may have been written.
        if (error instanceof StatementFailed && run.sent.size > 0) throw new StatementFailed("answer", error.cause);
        throw error;
      }
    });
  }

  async #decided<T>(run: CallRun<T>): Promise<T> {
    let conflictCount = 0;
    for (;;) {
      // Only others who write are given way to: what must be read as well grows with each look, and ends.
      if (conflictCount >= eagerTries) await this.#server.pause(this.#random.unit() * 5 * conflictCount);
      const image = this.#takeKept(run) ?? (await this.#load(run));
      const written = run.writtenOf(image);
      if (written) return written.answer;
      const decision = run.decide(image);
      if (decision.kind === "unread") continue;
      const { answer } = decision;
      if (!image.isChanged) {
        // A kept image may be out of date: what it refuses, or has already, is told by a fresh one.
        if (image.isKept) continue;
        return answer instanceof Numbered ? answer.answer(0) : answer;
      }
      const saved = await this.#save(run, image, answer);
      if (saved.kind === "again") {
        conflictCount++;
        continue;
      }
      this.#keep(image.kept(saved.saved));
      return answer instanceof Numbered ? answer.answer(saved.saved.input_seq ?? 0) : answer;
    }
  }

  #takeKept(run: CallRun<unknown>): SessionImage | undefined {
    const kept = this.#kept.get(run.call.sessionId);
    this.#kept.delete(run.call.sessionId);
    return run.mayUseKept() ? kept : undefined;
  }

  #keep(image: SessionImage | undefined): void {
    if (!image) return;
    this.#kept.set(image.sessionId, image);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > keptMax && oldest !== undefined) this.#kept.delete(oldest);
  }

  async #load(run: CallRun<unknown>): Promise<SessionImage> {
    const { sessionId } = run.call;
    const { keys, turnIds, inputIds, sessionIds } = run.reading;
    const rows = await this.#server.once<{ session_id: string; loaded: LoadedSession }>(
      `SELECT session_id, ${this.#server.schema}.load_session(session_id, $2, $3, $4) AS loaded
       FROM unnest($1::text[]) AS session_id`,
      [[...new Set([sessionId, ...sessionIds])], [...keys], [...turnIds], [...inputIds]],
    );
    const images = new Map(
      rows.map((row) => [row.session_id, new SessionImage(row.session_id, row.loaded, run.reading)]),
    );
    for (const image of images.values()) image.join(images);
    const own = images.get(sessionId);
    if (!own) throw storeError("STORE_CORRUPT", `Session ${sessionId} could not be read: the server answered no row.`);
    return own;
  }

  /** The statement that stores an image, with those of other sessions that its call has changed. */
  #saving(
    image: SessionImage,
    receipt: string,
    isSilent: boolean,
  ): readonly [text: string, values: readonly unknown[]] {
    const { schema } = this.#server;
    const changesOf = (one: SessionImage): object => ({
      lock_timeout: lockTimeout,
      runner_ttl_ms: this.#runnerTtlMs,
      ...one.changes,
      ...(isSilent ? { rings: undefined } : {}),
    });
    const others = image.changedOthers;
    if (others.length === 0) {
      const values = [image.sessionId, image.version, receipt, JSON.stringify(changesOf(image))];
      return [`SELECT ${schema}.save_session($1, $2, $3, $4) AS saved`, values];
    }
    const writes = [image, ...others].map((one) => {
      return { session_id: one.sessionId, version: one.version, receipt, changes: changesOf(one) };
    });
    return [`SELECT ${schema}.save_sessions($1) AS saved`, [JSON.stringify(writes)]];
  }

  async #save<T>(run: CallRun<T>, image: SessionImage, answer: T | Numbered<T>): Promise<Saved> {
    const receipt = run.nextReceipt();
    try {
      const [row] = await this.#server.once<{ saved: SavedSession | null }>(
        ...this.#saving(image, receipt, run.isSilent),
      );
      return row?.saved ? { kind: "saved", saved: row.saved } : { kind: "again" };
    } catch (error) {
      if (!(error instanceof StatementFailed)) throw error;
      if (error.phase === "answer") run.sent.set(receipt, { version: image.version, answer });
      if (codeOf(error.cause) === movedOn) return { kind: "again" };
      if (codeOf(error.cause) === limitExceeded && !run.isSilent) {
        run.isSilent = true;
        return { kind: "again" };
      }
      if (codeOf(error.cause) === "23505" && constraintOf(error.cause) === "entry_key") return { kind: "again" };
      throw error;
    }
  }
}

/** What `save_sessions` raises where one of several sessions is no longer as it was read. */
const movedOn = "TK001";

/** Among other things the queue of notifications is full: somebody who listens stands still in a transaction. */
const limitExceeded = "54000";

/** One call on its way: what it reads, and what it has sent without an answer. */
class CallRun<T> {
  readonly call: SessionCall<T>;
  readonly reading: Reading = new Reading();
  readonly sent: Map<string, Attempt<T>> = new Map();
  /** Wakes nobody: a wake-up is a hint, and no write fails for it. */
  isSilent = false;
  readonly #id: string;
  #attemptCount = 0;
  #mayUseKept = true;

  constructor(call: SessionCall<T>, id: string) {
    this.call = call;
    this.#id = id;
    const { keys = [], turnIds = [], inputIds = [] } = call.reading ?? {};
    for (const key of keys) this.reading.keys.add(key);
    for (const turnId of turnIds) this.reading.turnIds.add(turnId);
    for (const inputId of inputIds) this.reading.inputIds.add(inputId);
  }

  /** Once only: what was wrong with a kept image is not asked of the next. */
  mayUseKept(): boolean {
    const may = this.#mayUseKept;
    this.#mayUseKept = false;
    return may;
  }

  nextReceipt(): string {
    return `${this.#id}.${++this.#attemptCount}`;
  }

  decide(image: SessionImage): { readonly kind: "unread" } | { readonly kind: "decided"; answer: T | Numbered<T> } {
    try {
      return { kind: "decided", answer: this.call.decide(image) };
    } catch (error) {
      // A refusal on a kept image is a suspicion: a fresh one is asked.
      if (error instanceof Unread || image.isKept) return { kind: "unread" };
      throw error;
    } finally {
      this.reading.include(image.reading);
    }
  }

  /** What an attempt without an answer has written, as the names on a fresh image tell. */
  writtenOf(image: SessionImage): { readonly answer: T } | undefined {
    if (image.isKept || this.sent.size === 0) return undefined;
    for (const receipt of image.receipts) {
      const attempt = this.sent.get(receipt);
      if (attempt?.answer instanceof Numbered)
        return { answer: attempt.answer.answer(image.input(attempt.answer.inputId)?.seq ?? 0) };
      if (attempt) return { answer: attempt.answer };
    }
    const oldest = Math.min(...[...this.sent.values()].map(({ version }) => version));
    const { attempt, sessionId, isRepeatable } = this.call;
    if (image.version - oldest < receiptsMax || isRepeatable) return undefined;
    throw storeError(
      "STORE_IO",
      `Could not ${attempt}: the connection was lost before the answer came, and the session has been written so often since that it no longer tells whether it was. Read back, or repeat the call.`,
      { sessionId, isIndeterminate: true },
    );
  }
}
