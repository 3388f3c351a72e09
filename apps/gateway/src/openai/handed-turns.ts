import type { AnswerReader } from "./answer-reader.ts";

/**
 * The turns whose calls went out to clients of this process, by session: the reader of each, for the answer that goes on.
 * How long results are waited for is the agent's business, wherever they come.
 */
export class HandedTurns {
  readonly #bySession = new Map<string, AnswerReader>();

  add(sessionId: string, reader: AnswerReader): void {
    this.#bySession.set(sessionId, reader);
    // Stopped, overdue, or gone on with elsewhere: nobody asks for its reader any more.
    void reader.turn.result.then(() => {
      if (this.#bySession.get(sessionId) === reader) this.#bySession.delete(sessionId);
    });
  }

  /** The turn's reader, whose answer goes on. */
  take(sessionId: string): AnswerReader | undefined {
    const reader = this.#bySession.get(sessionId);
    this.#bySession.delete(sessionId);
    return reader;
  }
}
