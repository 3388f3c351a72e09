import type { Cancel } from "@turnkeeper/kernel";
import { backOffMs } from "./back-off.ts";
import { readTurnEvents } from "./event-reading.ts";
import type { ReadEvent } from "./event-reading.ts";
import { sessionPath } from "./gateway-client.ts";
import type { GatewayClient } from "./gateway-client.ts";
import type { Problem } from "./gateway-json.ts";
import type { PageHost } from "./page-host.ts";

export interface FollowerDeps {
  readonly client: GatewayClient;
  readonly host: PageHost;
}

export interface FollowerListener {
  /** A connection stands: what happened before it is in the store. `isAnew`: what was told before counts for nothing. */
  opened(isAnew: boolean): void;
  told(read: ReadEvent): void;
  /** The connection is gone; another one is tried after so long. */
  lost(retryInMs: number): void;
  /** There will be no other one. */
  ended(problem: Problem): void;
}

/** Refusals that another attempt does not change. */
const isFinal = ({ status }: Problem): boolean => status >= 400 && status < 500 && status !== 429 && status !== 408;

/**
 * Follows a session's turn events for as long as it is open: over restarts of the gateway, behind the last event that
 * came. Closing is safe to repeat; nothing is told afterwards.
 */
export class FollowedSession {
  readonly #deps: FollowerDeps;
  readonly #sessionId: string;
  readonly #listener: FollowerListener;
  #lastEventId: string | undefined;
  #isAnew = true;
  #attempt = 0;
  #controller: AbortController | undefined;
  #cancelRetry: Cancel = () => {};
  #isClosed = false;

  constructor(deps: FollowerDeps, sessionId: string, listener: FollowerListener) {
    this.#deps = deps;
    this.#sessionId = sessionId;
    this.#listener = listener;
    void this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry();
    this.#controller?.abort();
  }

  /** Does not wait for the time of the next attempt. */
  hurry(): void {
    if (this.#isClosed || this.#controller) return;
    this.#cancelRetry();
    void this.#connect();
  }

  async #connect(): Promise<void> {
    const { client, host } = this.#deps;
    const controller = (this.#controller = new AbortController());
    const answer = await client.open(sessionPath(this.#sessionId, "/events"), {
      accept: "text/event-stream",
      lastEventId: this.#lastEventId,
      signal: controller.signal,
    });
    if (this.#isClosed) return;
    if (answer.kind !== "answer") {
      this.#controller = undefined;
      this.#missed(answer.kind === "refused" ? answer.problem : undefined);
      return;
    }
    this.#attempt = 0;
    this.#listener.opened(this.#isAnew);
    this.#isAnew = false;
    const onEvent = (read: ReadEvent): void => {
      if (this.#isClosed) return;
      this.#lastEventId = read.id ?? this.#lastEventId;
      this.#listener.told(read);
    };
    const retryMs = await readTurnEvents(answer.value, { host, onEvent, controller });
    this.#controller = undefined;
    this.#later(Math.max(retryMs ?? 0, backOffMs(0, host.random.unit())));
  }

  #missed(problem: Problem | undefined): void {
    if (problem?.code === "event_gone" && this.#lastEventId !== undefined) {
      this.#lastEventId = undefined;
      this.#isAnew = true;
    } else if (problem && isFinal(problem)) {
      this.#isClosed = true;
      this.#listener.ended(problem);
      return;
    }
    this.#later(backOffMs(this.#attempt++, this.#deps.host.random.unit()));
  }

  #later(ms: number): void {
    if (this.#isClosed) return;
    this.#listener.lost(ms);
    this.#cancelRetry = this.#deps.host.timers.after(ms, () => void this.#connect());
  }
}
