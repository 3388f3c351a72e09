import type { Turn, TurnEvent, TurnFinished } from "@turnkeeper/agent-core";
import type { EventStream } from "./event-stream.ts";
import { suspends } from "./events/live-turns.ts";
import { SessionReader } from "./events/session-reader.ts";
import type { SessionReaderDeps } from "./events/session-reader.ts";
import { eventIdOf, startOf, TurnProgress } from "./events/turn-place.ts";
import type { EventPlace } from "./events/turn-place.ts";
import { toldEnd } from "./told-end.ts";

/**
 * Tells one call's events on one stream, each once and with the id that `GET …/events` goes on behind.
 *
 *   | the call's turn                      | its events come from                                       |
 *   | ------------------------------------ | ---------------------------------------------------------- |
 *   | begins for this call                 | the call                                                   |
 *   | is suspended, whoever goes on        | the session, from there on                                 |
 *   | runs for another call, or elsewhere  | the session: live where it runs here, else step by step    |
 */
class CallStream {
  readonly #stream: EventStream;
  readonly #turn: Turn;
  readonly #deps: SessionReaderDeps;
  #place: EventPlace;
  #progress: TurnProgress | undefined;
  /** What subagents ask: told by the call, and by the session while the turn runs here. */
  readonly #askedByChildren = new Set<string>();
  #following: { readonly reader: SessionReader | undefined; readonly told: Promise<"all" | "cut"> } | undefined;

  constructor(stream: EventStream, turn: Turn, deps: SessionReaderDeps) {
    this.#stream = stream;
    this.#turn = turn;
    this.#deps = deps;
    this.#place = { kind: "input", inputId: turn.inputId };
  }

  /** Reads the call to its end, whether or not its client is still there. */
  async run(): Promise<void> {
    void this.#stream.ended.then(() => this.#following?.reader?.close());
    try {
      for await (const event of this.#turn) {
        if (event.type === "turn.finished") await this.#end(event);
        else await this.#take(event);
      }
    } finally {
      this.#stream.end();
    }
  }

  async #take(event: TurnEvent): Promise<void> {
    const { turnId, type } = event;
    if (this.#following) {
      // What the session does not tell: that the call waits, and for whom, and what subagents ask meanwhile.
      if (type === "turn.waiting" || this.#isNewOfChild(event)) this.#send(event);
      return;
    }
    this.#isNewOfChild(event);
    if (turnId === undefined) return this.#send(event);
    if (type === "turn.started") this.#progress ??= new TurnProgress(startOf(turnId));
    if (this.#progress && !suspends(event)) {
      this.#place = this.#progress.tell(event);
      return this.#send(event);
    }
    if (type === "turn.waiting") this.#send(event);
    await this.#follow(turnId);
  }

  /** Whether it is a subagent's question that was not told yet; from now on it was. */
  #isNewOfChild(event: TurnEvent): boolean {
    if (event.type !== "approval.requested" || event.childSessionId === undefined) return false;
    const key = JSON.stringify([event.childSessionId, event.childTurnId, event.callId]);
    const isNew = !this.#askedByChildren.has(key);
    this.#askedByChildren.add(key);
    return isNew;
  }

  async #follow(turnId: string): Promise<void> {
    // Where the store fails nothing is told before the end, which says so; its client comes back behind the last it has.
    const reader = await SessionReader.open(this.#deps, this.#turn.sessionId, this.#place).catch(() => undefined);
    const told = reader ? this.#tellAll(reader, turnId) : Promise.resolve("cut" as const);
    this.#following = { reader, told };
    if (!this.#stream.isOpen) reader?.close();
  }

  /** Tells what the session says of the turn, all but its end. Never rejects. */
  async #tellAll(reader: SessionReader, turnId: string): Promise<"all" | "cut"> {
    try {
      for await (const { event, id, place } of reader.events()) {
        if (event.turnId !== turnId) continue;
        if (event.type === "turn.finished") return "all";
        this.#place = place;
        const isOfChild = event.type === "approval.requested" && event.childSessionId !== undefined;
        if (isOfChild && !this.#isNewOfChild(event)) continue;
        this.#stream.send(JSON.stringify(event), id);
        await this.#stream.hasRoom();
      }
    } catch {
      // So too where it fails later.
    }
    return "cut";
  }

  async #end(finished: TurnFinished): Promise<void> {
    const { turnId } = finished;
    if (turnId !== undefined && (await this.#hasToldAll(turnId))) this.#place = { ...startOf(turnId), isEnded: true };
    this.#send(toldEnd(finished));
  }

  /** Whether the turn has ended, and everything before its end was told. */
  async #hasToldAll(turnId: string): Promise<boolean> {
    if (this.#progress && !this.#following) return true;
    const turn = await this.#deps.store.turns.read(this.#turn.sessionId, turnId).catch(() => undefined);
    // The call was let go while its turn goes on, or waits: shut down, out of patience, unanswered.
    if (turn?.state !== "ended") {
      this.#following?.reader?.close();
      await this.#following?.told;
      return false;
    }
    if (!this.#following) await this.#follow(turnId);
    this.#following?.reader?.look();
    return (await this.#following?.told) === "all";
  }

  #send(event: TurnEvent): void {
    this.#stream.send(JSON.stringify(event), eventIdOf(this.#place));
  }
}

/** Sends a call's events as they happen, to its end; a client that goes away ends the stream, and not the call. */
export function sendCall(stream: EventStream, turn: Turn, deps: SessionReaderDeps): Promise<void> {
  return new CallStream(stream, turn, deps).run();
}
