import type { TurnEvent, TurnEventBody } from "@turnkeeper/agent-core";
import { callsOf } from "@turnkeeper/state-store";
import type { AskedCall, Entry, JsonValue, StateStore, TurnRecord } from "@turnkeeper/state-store";
import { isoTime } from "../json/session-json.ts";
import { startOf } from "./turn-place.ts";
import type { TurnPlace } from "./turn-place.ts";
import { toldEnd } from "../told-end.ts";

/** An event of a turn with where in the turn it stands, so that whoever was told a part of it is told the rest. */
export interface PlacedEvent {
  readonly event: TurnEvent;
  readonly turnId: string;
  readonly fencingToken: number;
  /** What of the turn's text and reasoning stands before it. */
  readonly textBefore: number;
  readonly reasoningBefore: number;
}

/** A call that was stored, and has no result yet. */
interface OpenCall {
  readonly atMs: number;
  readonly name: string;
  readonly input: JsonValue;
  readonly textBefore: number;
  readonly reasoningBefore: number;
}

/**
 * What the store has of a turn, as the events that told it or would have told it, entry by entry. What may have been told
 * already is told again: whoever reads it knows what it was told.
 */
export class StoredTurn {
  readonly turnId: string;
  #turn: TurnRecord;
  #text = 0;
  #reasoning = 0;
  readonly #openCalls = new Map<string, OpenCall>();
  /** The last whole answer, and the cut pieces before it that it goes on from. */
  #answer = "";
  #isPartial = false;

  constructor(turn: TurnRecord) {
    this.turnId = turn.turnId;
    this.#turn = turn;
  }

  get textLength(): number {
    return this.#text;
  }

  get reasoningLength(): number {
    return this.#reasoning;
  }

  /** The turn as it is stored now: what it asks, how it ended. */
  update(turn: TurnRecord): void {
    this.#turn = turn;
  }

  begun(): PlacedEvent {
    const { startedAtMs, fencingToken } = this.#turn;
    return this.#placed(startedAtMs, { type: "turn.started", fencingToken });
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
        const call = { atMs, name, input, textBefore: this.#text, reasoningBefore: this.#reasoning };
        this.#openCalls.set(callId, call);
        // One that had to be allowed first stands where its result does.
        if (!this.#asked(callId)) yield this.#placed(atMs, { type: "tool.started", callId, name, input });
      }
    } else if (body.role === "tool") {
      const { callId, name, output, note } = body;
      const call = this.#openCalls.get(callId);
      this.#openCalls.delete(callId);
      const asked = this.#asked(callId);
      if (call && asked) yield this.#question(asked, call);
      if (call) yield this.#placed(atMs, { type: "tool.started", callId, name: call.name, input: call.input });
      const durationMs = Math.max(0, Math.round(atMs - (call?.atMs ?? atMs)));
      const told = { callId, name, ok: body.status === "ok", output, durationMs, ...(note ? { note } : {}) };
      yield this.#placed(atMs, { type: "tool.finished", ...told });
    }
  }

  /** Counts an entry whose events nobody asks for. */
  skip(entry: Entry): void {
    for (const _event of this.of(entry));
  }

  /** The questions about calls that have no result yet. */
  *questions(): Generator<PlacedEvent> {
    for (const asked of this.#turn.approvals ?? []) {
      const call = this.#asked(asked.callId) && this.#openCalls.get(asked.callId);
      if (call) yield this.#question(asked, call);
    }
  }

  /** Nothing while it runs, or waits. */
  ended(): PlacedEvent | undefined {
    if (this.#turn.state !== "ended") return undefined;
    const { outcome, reason, detail, stop, usage, endedAtMs } = toldEnd(this.#turn);
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

  /** What somebody was asked about the call; one that merely waits for its subagent started unasked. */
  #asked(callId: string): AskedCall | undefined {
    return this.#turn.approvals?.find((asked) => asked.callId === callId && (!asked.child || asked.answer));
  }

  #question(asked: AskedCall, { input, textBefore, reasoningBefore }: OpenCall): PlacedEvent {
    const { callId, name, askedAtMs, resultUntilMs } = asked;
    const awaits = resultUntilMs === undefined ? {} : { awaits: "result" as const };
    const placed = this.#placed(askedAtMs, { type: "approval.requested", callId, name, input, ...awaits });
    return { ...placed, textBefore, reasoningBefore };
  }

  #placed(atMs: number, body: TurnEventBody): PlacedEvent {
    const { sessionId, turnId, fencingToken } = this.#turn;
    const event: TurnEvent = { ...body, sessionId, turnId, at: isoTime(atMs) };
    return { event, turnId, fencingToken, textBefore: this.#text, reasoningBefore: this.#reasoning };
  }
}

/**
 * How far a turn had come when it was suspended last, however far it has gone on since: to the end of the step whose
 * calls were asked about. Nothing of a turn that is not known.
 */
export async function suspendedPlace(
  store: StateStore,
  sessionId: string,
  turnId: string,
): Promise<TurnPlace | undefined> {
  const turn = await store.turns.read(sessionId, turnId);
  if (!turn) return undefined;
  const { entries } = await store.transcript.load(sessionId, { all: true, turnId });
  const asked = new Set(turn.approvals?.map(({ callId }) => callId));
  const last = entries.findLastIndex(({ body }) => callsOf(body).some(({ callId }) => asked.has(callId)));
  const stored = new StoredTurn(turn);
  for (const entry of entries.slice(0, last + 1)) stored.skip(entry);
  return { ...startOf(turnId), textLength: stored.textLength, reasoningLength: stored.reasoningLength };
}
