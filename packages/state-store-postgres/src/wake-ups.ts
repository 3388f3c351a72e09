/**
 * Wake-ups between the processes of a store: the transaction that has something to tell a process that waits notifies,
 * and each process listens on one connection of its own, outside the pool. A wake-up is a hint: whoever misses one
 * looks at the store all the same, a little later. So nothing here is repeated, acknowledged or kept.
 *
 * | the connection | then |
 * | --- | --- |
 * | listens | it is tried once, from another connection: a pooler in transaction mode takes LISTEN and delivers nothing |
 * | hears that | it is looked at now and then, since a cable that was cut says nothing |
 * | hears nothing | it is deaf: let go, and tried again after a long while |
 * | is refused, or lost | another takes its place, after a pause |
 */
import { messageOf } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { ResolvedPostgresStoreOptions } from "./options.ts";
import { StatementFailed } from "./server.ts";
import type { Server } from "./server.ts";
import { explain, phaseOf } from "./store-failure.ts";
import type { StoreUrl } from "./store-url.ts";
import { WakeUpConnection } from "./wake-up-connection.ts";

/** A subscription to wake-ups. Once its problem is known it keeps no process alive; disposed twice it is disposed once. */
export interface WakeUps extends Disposable {
  /** Once the first connection was tried: absent where wake-ups arrive, else why waiters only poll. Never rejects. */
  readonly problem: Promise<string | undefined>;
}

/** The payload of a trial; no session has an empty id. */
const trial = "";
/** A notification is there within milliseconds. */
const trialMs = 5_000;
const lookEveryMs = 30_000;
const firstPauseMs = 100;
const longestPauseMs = 10_000;
/** A pooler stays what it is. */
const deafPauseMs = 300_000;

const deafness =
  "The server took LISTEN and delivered nothing, as a pooler in transaction mode does: give listenUrl a way to the server itself, or set it to false.";

type Outcome = "heard" | "deaf" | "failed";

export class WakeUpListening {
  readonly #url: StoreUrl | undefined;
  readonly #options: ResolvedPostgresStoreOptions;
  readonly #server: Server;
  readonly #host: Host;
  readonly #listeners = new Set<(sessionId: string) => void>();
  readonly #known: Promise<string | undefined>;
  #tell: (problem: string | undefined) => void = () => {};
  #isRunning = false;
  #connection: WakeUpConnection | undefined;
  #endPause: () => void = () => {};

  /** Without a `url` nothing is listened to. */
  constructor(url: StoreUrl | undefined, options: ResolvedPostgresStoreOptions, server: Server, host: Host) {
    this.#url = url;
    this.#options = options;
    this.#server = server;
    this.#host = host;
    this.#known = new Promise((resolve) => (this.#tell = resolve));
    if (!url) this.#tell("listenUrl is false: waiters poll.");
  }

  listen(listener: (sessionId: string) => void): WakeUps {
    // A function of its own, so that one listener that is given twice is two.
    const own = (sessionId: string): void => listener(sessionId);
    if (this.#url && !this.#server.isClosed) {
      this.#listeners.add(own);
      if (!this.#isRunning) void this.#run(this.#url);
    }
    return {
      problem: this.#known,
      [Symbol.dispose]: () => {
        if (this.#listeners.delete(own) && this.#listeners.size === 0) this.#stop();
      },
    };
  }

  close(): void {
    this.#listeners.clear();
    this.#stop();
    this.#tell("The store is closed.");
  }

  #stop(): void {
    this.#connection?.destroy();
    this.#endPause();
  }

  async #run(url: StoreUrl): Promise<void> {
    this.#isRunning = true;
    for (let pauseMs = firstPauseMs; this.#listeners.size > 0;) {
      const outcome = await this.#attend(url);
      if (outcome === "heard") pauseMs = firstPauseMs;
      // Many clients lose one server at once, and should not come back as one.
      const restMs = outcome === "deaf" ? deafPauseMs : pauseMs * (0.5 + this.#host.random.unit() / 2);
      if (this.#listeners.size > 0) await this.#pause(restMs);
      pauseMs = Math.min(longestPauseMs, pauseMs * 2);
    }
    this.#isRunning = false;
  }

  /** Listens on one connection to its end. */
  async #attend(url: StoreUrl): Promise<Outcome> {
    let hear = (): void => {};
    const heard = new Promise<"heard">((resolve) => (hear = () => resolve("heard")));
    try {
      const connection = new WakeUpConnection(url, this.#host.timers, (payload) => {
        if (payload === trial) hear();
        else this.#ring(payload);
      });
      this.#connection = connection;
      const ended = connection.ended.then(() => "failed" as const);
      await connection.listen(this.#options.schema);
      await this.#server.once("SELECT pg_notify($1, $2)", [this.#options.schema, trial]);
      const late = this.#pause(trialMs, true).then(() => "deaf" as const);
      const outcome = await Promise.race([heard, ended, late]);
      this.#endPause();
      connection.linger();
      if (outcome !== "failed") this.#tell(outcome === "deaf" ? deafness : undefined);
      if (outcome === "heard") await this.#attended(connection);
      return outcome;
    } catch (error) {
      const cause = error instanceof StatementFailed ? error.cause : error;
      const phase = phaseOf(cause) === "refused" ? "refused" : "connect";
      this.#tell(explain(cause, { attempt: "listen for wake-ups", store: url.shown, phase }).message);
      return "failed";
    } finally {
      this.#connection?.destroy();
      this.#connection = undefined;
    }
  }

  async #attended(connection: WakeUpConnection): Promise<void> {
    while (!connection.isOver) {
      await Promise.race([connection.ended, this.#pause(lookEveryMs)]);
      this.#endPause();
      if (!connection.isOver) await connection.look(this.#options.answerMs);
    }
  }

  #ring(sessionId: string): void {
    for (const listener of this.#listeners) {
      try {
        listener(sessionId);
      } catch (error) {
        process.emitWarning("A listener for wake-ups threw.", {
          code: "WAKE_UP_LISTENER_FAILED",
          detail: messageOf(error),
        });
      }
    }
  }

  #pause(ms: number, keepAlive: boolean = false): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#host.timers.after(ms, resolve, { keepAlive });
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
