/**
 * How far into a turn somebody is, in terms that the store knows too: so many characters of its text and reasoning, and
 * the call whose result came last. What a gateway streamed live and what another one reads from the store after a crash
 * meet in it, without a gap and without a repeat. As text it is the id of a server-sent event:
 *
 *   `TURN:TEXT:REASONING[:FINISHED[:STARTED,?ASKED]]`    within a turn
 *   `TURN:end`                                           behind its end
 *   `input:INPUT`                                        before the turn that takes this input
 */
import type { TurnEvent } from "@turnkeeper/agent-core";

export interface TurnPlace {
  readonly kind: "turn";
  readonly turnId: string;
  /** UTF-16 code units of `text.delta` that were told. */
  readonly textLength: number;
  readonly reasoningLength: number;
  /** The call whose result was told last, since the last text: results are told in the order they are stored in. */
  readonly finishedCallId?: string | undefined;
  /** Calls that were told to have started, and whose result was not. */
  readonly startedCallIds: readonly string[];
  /** Calls that were told to wait for approval, and not to have started. */
  readonly askedCallIds: readonly string[];
  readonly isEnded: boolean;
}

/** A call that has been accepted; its turn has not begun. */
export interface InputPlace {
  readonly kind: "input";
  readonly inputId: string;
}

export type EventPlace = TurnPlace | InputPlace;

export const startOf = (turnId: string): TurnPlace => ({
  kind: "turn",
  turnId,
  textLength: 0,
  reasoningLength: 0,
  startedCallIds: [],
  askedCallIds: [],
  isEnded: false,
});

export function eventIdOf(place: EventPlace): string {
  if (place.kind === "input") return `input:${encodeURIComponent(place.inputId)}`;
  const { turnId, textLength, reasoningLength, finishedCallId, startedCallIds, askedCallIds, isEnded } = place;
  if (isEnded) return `${turnId}:end`;
  const within = `${turnId}:${textLength}:${reasoningLength}`;
  const open = [
    ...startedCallIds.map(encodeURIComponent),
    ...askedCallIds.map((callId) => `${askedMark}${encodeURIComponent(callId)}`),
  ];
  if (finishedCallId === undefined && open.length === 0) return within;
  const finished = `${within}:${encodeURIComponent(finishedCallId ?? "")}`;
  return open.length === 0 ? finished : `${finished}:${open.join(",")}`;
}

/** No encoded id has it. */
const askedMark = "?";

const endPattern = /^([0-9A-Za-z-]{1,64}):end$/;
const inputPattern = /^input:([\x21-\x7e]{1,600})$/;
const withinPattern = /^([0-9A-Za-z-]{1,64}):(\d{1,12}):(\d{1,12})(?::([^\s:,]{0,2000})(?::([^\s:]{1,8000}))?)?$/;

/** Nothing for what is no event id of ours. */
export function placeOf(eventId: string): EventPlace | undefined {
  try {
    const ended = endPattern.exec(eventId)?.[1];
    if (ended !== undefined) return { ...startOf(ended), isEnded: true };
    const inputId = inputPattern.exec(eventId)?.[1];
    if (inputId !== undefined) return { kind: "input", inputId: decodeURIComponent(inputId) };
    const [, turnId, text, reasoning, finished = "", open = ""] = withinPattern.exec(eventId) ?? [];
    if (turnId === undefined) return undefined;
    const openCalls = open === "" ? [] : open.split(",");
    return {
      ...startOf(turnId),
      textLength: Number(text),
      reasoningLength: Number(reasoning),
      ...(finished === "" ? {} : { finishedCallId: decodeURIComponent(finished) }),
      startedCallIds: openCalls.filter((call) => !call.startsWith(askedMark)).map(decodeURIComponent),
      askedCallIds: openCalls
        .filter((call) => call.startsWith(askedMark))
        .map((call) => decodeURIComponent(call.slice(1))),
    };
  } catch (error) {
    // Percent signs that are no encoding.
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

/** Text of the next step comes once every result of the one before is stored. */
const noCalls = {
  finishedCallId: undefined,
  startedCallIds: [] as readonly string[],
  askedCallIds: [] as readonly string[],
};

/** Follows the events of one turn as they are told live, and knows the place behind the last one. */
export class TurnProgress {
  #place: TurnPlace;
  /** Where the model request began that is under way: what came of one that is tried again is stored nowhere. */
  #base: TurnPlace;
  #hasWords = false;

  constructor(place: TurnPlace) {
    this.#place = place;
    this.#base = place;
  }

  get place(): TurnPlace {
    return this.#place;
  }

  tell(event: TurnEvent): TurnPlace {
    switch (event.type) {
      case "text.delta":
        this.#hasWords ||= event.text.trim() !== "";
        return this.#move({ textLength: this.#place.textLength + event.text.length, ...noCalls });
      case "reasoning.delta":
        return this.#move({ reasoningLength: this.#place.reasoningLength + event.text.length, ...noCalls });
      case "tool.started":
        return this.#begin({
          startedCallIds: [...this.#place.startedCallIds, event.callId],
          askedCallIds: this.#place.askedCallIds.filter((callId) => callId !== event.callId),
        });
      case "tool.finished":
        return this.#begin({
          finishedCallId: event.callId,
          startedCallIds: this.#place.startedCallIds.filter((callId) => callId !== event.callId),
          askedCallIds: this.#place.askedCallIds.filter((callId) => callId !== event.callId),
        });
      case "approval.requested":
        // A child's is asked in the child's session.
        return event.childSessionId === undefined
          ? this.#begin({ askedCallIds: [...this.#place.askedCallIds, event.callId] })
          : this.#place;
      case "model.retry":
        // What had come is kept where it has words, and asked for again where it has none.
        return this.#hasWords ? this.#begin({}) : this.#begin(this.#base);
      case "steer.delivered":
        return this.#begin({});
      case "turn.finished":
        return this.#move({ ...startOf(this.#place.turnId), isEnded: true });
      default:
        return this.#place;
    }
  }

  #move(changes: Partial<TurnPlace>): TurnPlace {
    return (this.#place = { ...this.#place, ...changes });
  }

  #begin(changes: Partial<TurnPlace>): TurnPlace {
    this.#base = this.#move(changes);
    this.#hasWords = false;
    return this.#base;
  }
}
