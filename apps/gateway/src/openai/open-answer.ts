import type { TurnFinished } from "@turnkeeper/agent-core";
import { messageOf } from "@turnkeeper/kernel";
import type { GatewayParts } from "../gateway-parts.ts";
import type { AnswerPiece, AnswerReader } from "./answer-reader.ts";
import type { HandedTurns } from "./handed-turns.ts";

export interface OpenAnswerDeps extends Pick<GatewayParts, "store"> {
  readonly handed: HandedTurns;
}

export interface AnswerPlace {
  /** The client can come back to the session: what it is to run is waited for. */
  readonly isResumable: boolean;
  /** The session stays when the answer has ended. */
  readonly isKept: boolean;
}

/** An answer on its way to its client. */
export class OpenAnswer {
  readonly #deps: OpenAnswerDeps;
  readonly #reader: AnswerReader;
  readonly #place: AnswerPlace;

  constructor(deps: OpenAnswerDeps, reader: AnswerReader, place: AnswerPlace) {
    this.#deps = deps;
    this.#reader = reader;
    this.#place = place;
  }

  get sessionId(): string {
    return this.#reader.turn.sessionId;
  }

  get inputId(): string {
    return this.#reader.turn.inputId;
  }

  get isKept(): boolean {
    return this.#place.isKept;
  }

  get usage(): AnswerReader["usage"] {
    return this.#reader.usage;
  }

  /** The client has gone: a turn that nobody can ask for any more is stopped, any other goes on. */
  abandon(): void {
    if (!this.#place.isKept) this.#reader.turn.stop({ hard: true, by: "openai client that went away" });
  }

  /** The answer, piece by piece; when the last one comes, nothing is left of a session that is not kept. */
  async *pieces(): AsyncGenerator<AnswerPiece, void, undefined> {
    try {
      for await (const piece of this.#reader.pieces()) {
        if (piece.kind === "calls") await this.#handOver();
        if (piece.kind === "end") await this.#forget();
        yield piece;
      }
    } catch (error) {
      // Nobody reads it any further.
      this.abandon();
      throw error;
    }
  }

  /** A session that the client can come back to waits for the results. In another the next request tells all of it anew. */
  async #handOver(): Promise<void> {
    if (this.#place.isResumable) return this.#deps.handed.add(this.sessionId, this.#reader);
    await this.#stopped();
    await this.#forget();
  }

  #stopped(): Promise<TurnFinished> {
    this.#reader.turn.stop({ hard: true, by: "openai client that runs the calls" });
    return this.#reader.turn.result;
  }

  /** A session that stays costs less than its answer, which a client that did not get it would ask for again. */
  async #forget(): Promise<void> {
    if (this.#place.isKept) return;
    try {
      await this.#deps.store.sessions.delete(this.sessionId);
    } catch (error) {
      process.emitWarning(`Could not forget session ${this.sessionId}, whose answer was told: ${messageOf(error)}`);
    }
  }
}
