import type { Cancel, Host } from "@turnkeeper/kernel";
import type { AnswerReader } from "./answer-reader.ts";

/** How long a client may take over the calls that it runs; then they are settled as not run. */
export const handedMs = 600_000;

interface HandedTurn {
  readonly reader: AnswerReader;
  readonly cancel: Cancel;
}

/** The turns that wait for what clients make of their calls, by session. `dispose` leaves them suspended in the store. */
export class HandedTurns implements Disposable {
  readonly #host: Host;
  readonly #bySession = new Map<string, HandedTurn>();
  #isClosed = false;

  constructor(host: Host) {
    this.#host = host;
  }

  add(sessionId: string, reader: AnswerReader): void {
    if (this.#isClosed) return;
    // A retry of the request reads the same turn.
    this.take(sessionId);
    const cancel = this.#host.timers.after(handedMs, () => void this.settle(sessionId, "client that did not answer"));
    this.#bySession.set(sessionId, { reader, cancel });
  }

  /** The turn's reader, whose answer goes on. */
  take(sessionId: string): AnswerReader | undefined {
    const handed = this.#bySession.get(sessionId);
    this.#bySession.delete(sessionId);
    handed?.cancel();
    return handed?.reader;
  }

  /** Nobody answers the calls any more: they are settled as not run, and the turn ends. */
  async settle(sessionId: string, by: string): Promise<void> {
    const turn = this.take(sessionId)?.turn;
    turn?.stop({ hard: true, by });
    await turn?.result;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    for (const { cancel } of this.#bySession.values()) cancel();
    this.#bySession.clear();
  }
}
