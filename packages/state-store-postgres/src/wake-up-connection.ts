import { Socket } from "node:net";
import type { Timers } from "@turnkeeper/kernel";
import pg from "pg";
import type { StoreUrl } from "./store-url.ts";

/** A connection that is not there by then never will be. */
const connectMs = 5_000;

/** One connection that listens to one channel. It keeps the process alive until it is told to `linger` alone. */
export class WakeUpConnection {
  /** Resolves once the connection is no more, whoever ended it. */
  readonly ended: Promise<void>;
  readonly #client: pg.Client;
  readonly #socket = new Socket();
  readonly #timers: Timers;
  #isOver = false;

  constructor(url: StoreUrl, timers: Timers, onPayload: (payload: string) => void) {
    this.#timers = timers;
    this.#client = new pg.Client({
      connectionString: url.connectionString,
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
      fallback_application_name: "turnkeeper listens",
      // Our own, since one whose other end says nothing can only be destroyed.
      stream: () => this.#socket,
    });
    this.ended = new Promise((resolve) => {
      const end = (): void => {
        this.#isOver = true;
        this.#socket.destroy();
        resolve();
      };
      this.#client.on("error", end);
      this.#client.on("end", end);
    });
    this.#client.on("notification", ({ payload = "" }) => onPayload(payload));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  async listen(channel: string): Promise<void> {
    await this.#client.connect();
    await this.#client.query(`LISTEN ${this.#client.escapeIdentifier(channel)}`);
  }

  /** Whoever has nothing else to do may end. */
  linger(): void {
    this.#socket.unref();
  }

  /** Asks the server for a word, and destroys the connection where none comes in time. */
  async look(answerMs: number): Promise<void> {
    const cancel = this.#timers.after(answerMs, () => this.destroy(), { keepAlive: false });
    await Promise.race([this.ended, this.#client.query("SELECT 1").catch(() => this.destroy())]);
    cancel();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
