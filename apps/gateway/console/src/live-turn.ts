import type { TurnEvent } from "@turnkeeper/agent-core";
import { durationText } from "./time-text.ts";

export type Tone = "info" | "good" | "warn" | "bad";

/** A sentence between what was said: a stall, a retry, how a turn ended. */
export interface Note {
  readonly kind: "note";
  readonly tone: Tone;
  readonly text: string;
  readonly at: string;
  /** A session that has to do with it. */
  readonly sessionId?: string;
}

/** Words of a turn, from a place in all its words on: what of them is stored by now is told by the transcript. */
export interface LiveWords {
  readonly kind: "text" | "reasoning";
  readonly from: number;
  readonly text: string;
}

export interface LiveCall {
  readonly kind: "call";
  readonly callId: string;
  readonly name: string;
  readonly input: unknown;
  readonly at: string;
}

export type LivePiece = LiveWords | LiveCall | Note;

export interface LiveResult {
  readonly ok: boolean;
  readonly output: unknown;
  readonly durationMs: number;
  readonly note?: string;
}

/** A turn as its events tell it, in order. */
export interface LiveTurn {
  readonly turnId: string;
  readonly pieces: readonly LivePiece[];
  readonly results: ReadonlyMap<string, LiveResult>;
  readonly isEnded: boolean;
}

export const beginLiveTurn = (turnId: string): LiveTurn => ({
  turnId,
  pieces: [],
  results: new Map(),
  isEnded: false,
});

/** How much text and reasoning stands before the place that an event's id names; nothing where it names none. */
export function wordsBefore(id: string | undefined): { text: number; reasoning: number } | undefined {
  const [, text, reasoning] = /^[0-9A-Za-z-]+:(\d+):(\d+)(?::|$)/.exec(id ?? "") ?? [];
  return text === undefined ? undefined : { text: Number(text), reasoning: Number(reasoning) };
}

function endOf(pieces: readonly LivePiece[], kind: LiveWords["kind"]): number {
  const last = pieces.findLast((piece): piece is LiveWords => piece.kind === kind);
  return last ? last.from + last.text.length : 0;
}

function withWords(pieces: readonly LivePiece[], kind: LiveWords["kind"], text: string, end: number | undefined) {
  const from = (end ?? endOf(pieces, kind) + text.length) - text.length;
  const last = pieces.at(-1);
  if (last?.kind !== kind || last.from + last.text.length !== from) return [...pieces, { kind, from, text }];
  return [...pieces.slice(0, -1), { ...last, text: last.text + text }];
}

/** Takes back the words behind a place: what came of an attempt that is made again. */
function cutBehind(pieces: readonly LivePiece[], ends: { text: number; reasoning: number }): readonly LivePiece[] {
  return pieces.flatMap((piece): LivePiece[] => {
    if (piece.kind !== "text" && piece.kind !== "reasoning") return [piece];
    const text = piece.text.slice(0, Math.max(0, ends[piece.kind] - piece.from));
    return text === "" ? [] : [{ ...piece, text }];
  });
}

/** What an event says in a sentence of its own; nothing for words and calls. */
function noteOf(event: TurnEvent): Omit<Note, "kind" | "at"> | undefined {
  switch (event.type) {
    case "turn.stalled":
      return {
        tone: "warn",
        text: `No progress for ${durationText(event.idleMs)}; the last was: ${event.lastProgress}.`,
      };
    case "turn.resumed":
      return { tone: "good", text: "The turn moves again." };
    case "model.retry":
      return { tone: "warn", text: `The model is asked again, attempt ${event.attempt + 1}: ${event.reason}` };
    case "model.fallback":
      return { tone: "warn", text: `${event.from} cannot answer; ${event.to} does: ${event.reason}` };
    case "compaction.finished":
      return { tone: "info", text: `A summary took the place of ${event.entryCount} entries.` };
    case "compaction.deferred":
      return { tone: "warn", text: `Nothing was summarised: ${event.detail}` };
    case "child.started":
      return { tone: "info", text: "A subagent works.", sessionId: event.childSessionId };
    case "child.finished":
      return { tone: "info", text: `The subagent has ended: ${event.outcome}.`, sessionId: event.childSessionId };
    case "approval.requested":
      if (event.childSessionId === undefined) return undefined;
      return { tone: "warn", text: `A subagent asks to run ${event.name}.`, sessionId: event.childSessionId };
    default:
      return undefined;
  }
}

/** The turn behind one more event of it. */
export function liveTurnAfter(turn: LiveTurn, event: TurnEvent, id: string | undefined): LiveTurn {
  const ends = wordsBefore(id);
  switch (event.type) {
    case "text.delta":
      return { ...turn, pieces: withWords(turn.pieces, "text", event.text, ends?.text) };
    case "reasoning.delta":
      return { ...turn, pieces: withWords(turn.pieces, "reasoning", event.text, ends?.reasoning) };
    case "tool.started": {
      const { callId, name, input, at } = event;
      if (turn.pieces.some((piece) => piece.kind === "call" && piece.callId === callId)) return turn;
      return { ...turn, pieces: [...turn.pieces, { kind: "call", callId, name, input, at }] };
    }
    case "tool.finished": {
      const { callId, ok, output, durationMs, note } = event;
      const result: LiveResult = { ok, output, durationMs, ...(note === undefined ? {} : { note }) };
      return { ...turn, results: new Map([...turn.results, [callId, result]]) };
    }
    case "turn.finished":
      return { ...turn, isEnded: true };
    default: {
      const note = noteOf(event);
      const kept = event.type === "model.retry" && ends ? cutBehind(turn.pieces, ends) : turn.pieces;
      if (!note) return kept === turn.pieces ? turn : { ...turn, pieces: kept };
      return { ...turn, pieces: [...kept, { kind: "note", at: event.at, ...note }] };
    }
  }
}
