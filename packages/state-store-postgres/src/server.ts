/**
 * The way to the server: a bounded pool of connections on which nothing of a session's state is ever kept (no prepared
 * names, no settings, no locks), so that a pooler in transaction mode may stand between. Every statement is a
 * transaction of its own.
 *
 * Leaves to session-writes what is repeated after an answer was lost.
 */
import type { Host } from "@turnkeeper/kernel";
import pg from "pg";
import type { ResolvedPostgresStoreOptions } from "./options.ts";
import { closedError, explain, isPassing, phaseOf } from "./store-failure.ts";
import type { Phase } from "./store-failure.ts";
import type { StoreUrl } from "./store-url.ts";

/** A connection that is not there by then never will be: a name that resolves to nothing, a firewall. */
const connectMs = 5_000;
/**
 * Longer than the minute between two renewals, so that a turn keeps its connection however long its model thinks: on a new
 * one the server plans every statement anew, and the hand-over at the turn's end would take ten times as long. A process
 * without turns holds none.
 */
const idleMs = 90_000;

const firstPauseMs = 25;
const longestPauseMs = 1_000;

/** Why a statement has no answer, and how far it had come. */
export class StatementFailed extends Error {
  readonly phase: Phase;

  constructor(phase: Phase, cause: unknown) {
    super("A statement failed.", { cause });
    this.phase = phase;
  }
}

export class Server {
  /** The store's URL as messages show it. */
  readonly shown: string;
  /** The schema's name, quoted. */
  readonly schema: string;
  readonly #pool: pg.Pool;
  readonly #host: Host;
  #closing: Promise<void> | undefined;

  constructor(url: StoreUrl, options: ResolvedPostgresStoreOptions, host: Host) {
    this.shown = url.shown;
    this.schema = `"${options.schema}"`;
    this.#host = host;
    this.#pool = new pg.Pool({
      connectionString: url.connectionString,
      max: options.connectionsMax,
      connectionTimeoutMillis: connectMs,
      idleTimeoutMillis: idleMs,
      query_timeout: options.answerMs,
      keepAlive: true,
      allowExitOnIdle: true,
      fallback_application_name: "turnkeeper",
    });
    // A connection that is lost between two statements is told here and to nobody else; the next statement gets another.
    this.#pool.on("error", ignore);
    this.#pool.on("connect", (client) => void client.on("error", ignore));
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** One statement, tried once. Throws `StatementFailed`. */
  async once<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    if (this.isClosed) throw closedError(this.shown);
    const client = await this.#connect();
    try {
      const { rows } = await client.query<Row>({ text, values: [...values] });
      client.release();
      return rows;
    } catch (error) {
      const phase = phaseOf(error);
      // What was not answered may be answered yet: nobody else may read that.
      client.release(phase === "answer" || isPassing(error, phase));
      throw new StatementFailed(phase, error);
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw this.isClosed ? closedError(this.shown) : new StatementFailed("connect", error);
    }
  }

  /** Repeats `act` while what stops it may pass, for so long; then throws what it means to the caller. */
  async patiently<T>(attempt: string, patienceMs: number, act: () => Promise<T>): Promise<T> {
    const { clock, random } = this.#host;
    const untilMs = clock.monotonicMs() + patienceMs;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
      try {
        return await act();
      } catch (error) {
        if (!(error instanceof StatementFailed)) throw error;
        const isOver = clock.monotonicMs() + pauseMs > untilMs;
        if (isOver || !isPassing(error.cause, error.phase))
          throw explain(error.cause, { attempt, store: this.shown, phase: error.phase });
      }
      // Many clients lose one server at once, and should not come back as one.
      await this.pause(pauseMs * (0.5 + random.unit() / 2));
    }
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#host.timers.after(ms, resolve));
  }

  /** One statement that reads; repeated while what stops it may pass. */
  read<Row extends pg.QueryResultRow>(
    attempt: string,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    return this.patiently(attempt, patience.ordinary, () => this.once<Row>(text, values));
  }

  /** Refuses new statements and lets those on their way end. */
  close(): Promise<void> {
    return (this.#closing ??= this.#pool.end());
  }
}

/** How long a call goes on trying, in milliseconds. */
export const patience = {
  /** A failure would cost the user's turn: a restart or a failover of the server is waited for. */
  "turn-data": 60_000,
  ordinary: 20_000,
  /** Somebody is looking at it: a server that comes up by then is waited for, and no other. */
  open: 3_000,
  /** Repeated anyway; a late one is worth nothing. */
  renewal: 5_000,
} as const;

function ignore(): void {}
