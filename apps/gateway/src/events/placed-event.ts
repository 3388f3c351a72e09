import type { TurnEvent, TurnEventBody } from "@turnkeeper/agent-core";
import { callsOf } from "@turnkeeper/state-store";
import type { Entry, StateStore, TurnRecord } from "@turnkeeper/state-store";
import { isoTime } from "../json/session-json.ts";

/** An event of a turn with where in the turn it stands, so that whoever was told a part of it is told the rest. */
export interface PlacedEvent {
  readonly event: TurnEvent;
  readonly turnId: string;
  readonly fencingToken: number;
  /** What of the turn's text and reasoning stands before it. */
  readonly textBefore: number;
  readonly reasoningBefore: number;
}

/** What the store has of a turn, as the events that told it or would have told it, entry by entry. */
export class StoredTurn {
  readonly turnId: string;
  readonly #sessionId: string;
  readonly #fencingToken: number;
  readonly #startedAtMs: number;
  #text = 0;
  #reasoning = 0;
  /** When each call was stored, for how long it took. */
  readonly #callsAtMs = new Map<string, number>();
  /** The last whole answer, and the cut pieces before it that it goes on from. */
  #answer = "";
  #isPartial = false;

  constructor({ sessionId, turnId, fencingToken, startedAtMs }: TurnRecord) {
    this.turnId = turnId;
    this.#sessionId = sessionId;
    this.#fencingToken = fencingToken;
    this.#startedAtMs = startedAtMs;
  }

  get textLength(): number {
    return this.#text;
  }

  get reasoningLength(): number {
    return this.#reasoning;
  }

  begun(): PlacedEvent {
    return this.#placed(this.#startedAtMs, { type: "turn.started", fencingToken: this.#fencingToken });
  }

  *of({ body, atMs, late }: Entry): Generator<PlacedEvent> {
    // What came after its turn had lost the session settles nothing, and is no event of it.
    if (late) return;
    if (body.role === "assistant") {
      if (!this.#isPartial) this.#answer = "";
      this.#isPartial = body.partial === true;
      for (const part of body.parts) {
        if (part.type === "text") {
          yield this.#placed(atMs, { type: "text.delta", text: part.text });
          this.#text += part.text.length;
          this.#answer += part.text;
        } else if (part.type === "reasoning" && part.text !== "") {
          yield this.#placed(atMs, { type: "reasoning.delta", text: part.text });
          this.#reasoning += part.text.length;
        }
      }
      for (const { callId, name, input } of callsOf(body)) {
        this.#callsAtMs.set(callId, atMs);
        yield this.#placed(atMs, { type: "tool.started", callId, name, input });
      }
    } else if (body.role === "tool") {
      const { callId, name, output, note } = body;
      const durationMs = Math.max(0, Math.round(atMs - (this.#callsAtMs.get(callId) ?? atMs)));
      const told = { callId, name, ok: body.status === "ok", output, durationMs, ...(note ? { note } : {}) };
      yield this.#placed(atMs, { type: "tool.finished", ...told });
    }
  }

  /** Nothing while it runs. */
  ended(turn: TurnRecord): PlacedEvent | undefined {
    if (turn.state !== "ended") return undefined;
    const { outcome, reason, detail, stop, usage, endedAtMs } = turn;
    return this.#placed(endedAtMs, {
      type: "turn.finished",
      outcome,
      text: this.#answer,
      ...(reason === undefined ? {} : { reason }),
      ...(detail === undefined ? {} : { detail }),
      ...(stop === undefined ? {} : { by: stop.by }),
      ...(usage === undefined ? {} : { usage }),
    });
  }

  #placed(atMs: number, body: TurnEventBody): PlacedEvent {
    const event: TurnEvent = { ...body, sessionId: this.#sessionId, turnId: this.turnId, at: isoTime(atMs) };
    return {
      event,
      turnId: this.turnId,
      fencingToken: this.#fencingToken,
      textBefore: this.#text,
      reasoningBefore: this.#reasoning,
    };
  }
}

/** Everything a turn has stored so far, as events, without its end; nothing of a turn that is not known. */
export async function storedEvents(
  store: StateStore,
  sessionId: string,
  turnId: string,
): Promise<readonly TurnEvent[]> {
  const turn = await store.turns.read(sessionId, turnId);
  if (!turn) return [];
  const { entries } = await store.transcript.load(sessionId, { all: true, turnId });
  const stored = new StoredTurn(turn);
  return [stored.begun(), ...entries.flatMap((entry) => [...stored.of(entry)])].map(({ event }) => event);
}
