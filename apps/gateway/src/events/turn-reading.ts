import type { TurnEvent } from "@turnkeeper/agent-core";
import type { PlacedEvent } from "./placed-event.ts";
import { eventIdOf, startOf, TurnProgress } from "./turn-place.ts";
import type { TurnPlace } from "./turn-place.ts";

/** What a reader is told: an event, or the rest of one, with the id of the place behind it. */
export interface ToldEvent {
  readonly event: TurnEvent;
  readonly id: string;
  readonly place: TurnPlace;
}

/**
 * What one reader of a session has been told, so that whatever reaches it twice (live and from the store, or again after
 * a new connection) is told once: each event of each turn, in order.
 */
export class TurnReading {
  #fencingToken: number;
  #progress: TurnProgress | undefined;
  #hasBegun: boolean;
  readonly #started: Set<string>;
  readonly #finished = new Set<string>();
  readonly #asked: Set<string>;
  /** The results up to this call's were told on an earlier connection. */
  #skipThroughCall: string | undefined;

  /** Begins behind `place`, in the turn of that token; without a place, behind every turn up to that token. */
  constructor(fencingToken: number, place?: TurnPlace) {
    this.#fencingToken = fencingToken;
    this.#progress = place && new TurnProgress(place);
    this.#hasBegun = place !== undefined;
    this.#started = new Set(place?.startedCallIds);
    this.#asked = new Set(place?.askedCallIds);
    this.#skipThroughCall = place?.finishedCallId;
  }

  /** The place behind what was told last; nothing before anything was. */
  get place(): TurnPlace | undefined {
    return this.#progress?.place;
  }

  /** Nothing when it was told already. */
  take(placed: PlacedEvent): ToldEvent | undefined {
    const isOther = placed.turnId !== this.place?.turnId;
    if (isOther && placed.fencingToken <= this.#fencingToken) return undefined;
    if (isOther) this.#beginTurn(placed);
    this.#fencingToken = placed.fencingToken;
    if (this.place?.isEnded) return undefined;
    const event = this.#untold(placed);
    if (!event || !this.#progress) return undefined;
    const place = this.#progress.tell(event);
    return { event, id: eventIdOf(place), place };
  }

  #beginTurn({ turnId }: PlacedEvent): void {
    this.#progress = new TurnProgress(startOf(turnId));
    this.#hasBegun = false;
    this.#started.clear();
    this.#finished.clear();
    this.#asked.clear();
    this.#skipThroughCall = undefined;
  }

  #untold({ event, textBefore, reasoningBefore }: PlacedEvent): TurnEvent | undefined {
    const { textLength = 0, reasoningLength = 0 } = this.place ?? {};
    // Words that were told stand behind it: so it was told too.
    const isBehind = textBefore < textLength || reasoningBefore < reasoningLength;
    switch (event.type) {
      case "turn.started":
        if (this.#hasBegun) return undefined;
        this.#hasBegun = true;
        return event;
      case "text.delta":
        return rest(event, textLength - textBefore);
      case "reasoning.delta":
        return rest(event, reasoningLength - reasoningBefore);
      case "tool.started": {
        const { callId } = event;
        const isTold = isBehind || this.#started.has(callId) || this.#finished.has(callId);
        if (isTold || this.#skipThroughCall !== undefined) return undefined;
        this.#started.add(callId);
        return event;
      }
      case "tool.finished":
        return this.#untoldResult(event, isBehind);
      case "approval.requested": {
        const { callId, childSessionId } = event;
        if (childSessionId !== undefined) return event;
        const hasStarted = this.#started.has(callId) || this.#finished.has(callId);
        const isTold = isBehind || hasStarted || this.#asked.has(callId) || this.#skipThroughCall !== undefined;
        this.#asked.add(callId);
        return isTold ? undefined : event;
      }
      case "model.retry":
        // What was told of an attempt that is made again counts for nothing, also where an earlier connection told it.
        if (isBehind && this.place)
          this.#progress = new TurnProgress({
            ...this.place,
            textLength: textBefore,
            reasoningLength: reasoningBefore,
          });
        return event;
      default:
        return event;
    }
  }

  #untoldResult(event: Extract<TurnEvent, { type: "tool.finished" }>, isBehind: boolean): TurnEvent | undefined {
    const { callId } = event;
    const isSkipped = this.#skipThroughCall !== undefined;
    if (callId === this.#skipThroughCall) this.#skipThroughCall = undefined;
    const isTold = isBehind || isSkipped || this.#finished.has(callId);
    this.#finished.add(callId);
    return isTold ? undefined : event;
  }
}

/** A delta without what was told of it. */
function rest<Delta extends Extract<TurnEvent, { readonly text: string }>>(
  event: Delta,
  toldLength: number,
): Delta | undefined {
  if (toldLength <= 0) return event.text === "" ? undefined : event;
  return toldLength >= event.text.length ? undefined : { ...event, text: event.text.slice(toldLength) };
}
