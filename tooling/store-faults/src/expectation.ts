import type { InputEnd } from "@turnkeeper/state-store";
import type { Acknowledgement } from "./acknowledgement.ts";

/** What must be there. */
export interface Content {
  readonly keys: Set<string>;
  readonly inputIds: Set<string>;
  /** Inputs that must be settled, and as what. */
  readonly ends: Map<string, InputEnd>;
  /** Turns that must not be running any more. */
  readonly endedTurnIds: Set<string>;
}

/** What a session must still have, because it was acknowledged. */
export interface SessionExpectation extends Content {
  /** What went to the spool, and must be back once somebody was granted the session. */
  readonly kept: Content;
  /** The greatest token that must never be granted again. */
  fencingToken: number;
}

/** Which tokens bind the store: all that were granted, or those alone under which something durable was written. */
export type BindingTokens = "granted" | "durable";

function nothing(): Content {
  return { keys: new Set(), inputIds: new Set(), ends: new Map(), endedTurnIds: new Set() };
}

function nothingOfSession(): SessionExpectation {
  return { ...nothing(), kept: nothing(), fencingToken: 0 };
}

/** Everything that was acknowledged so far, by session. */
export class Expectation {
  readonly sessions = new Map<string, SessionExpectation>();
  readonly #binding: BindingTokens;
  readonly #mayBeLate: boolean;
  /** Every acknowledged append. */
  appendCount = 0;
  /** Every step that was kept in the spool. */
  keptCount = 0;
  acknowledgementCount = 0;

  /**
   * The sessions named are looked at even if nothing was acknowledged of them: of what is there all must be sound.
   * `mayBeLate`: what was kept may come back after its turn was settled without it.
   */
  constructor(binding: BindingTokens, sessionIds: readonly string[], mayBeLate = false) {
    this.#binding = binding;
    this.#mayBeLate = mayBeLate;
    for (const sessionId of sessionIds) this.sessions.set(sessionId, nothingOfSession());
  }

  add(told: Acknowledgement): void {
    this.acknowledgementCount++;
    const session = this.sessions.get(told.sessionId) ?? nothingOfSession();
    this.sessions.set(told.sessionId, session);
    const isBinding = told.told !== "granted" || this.#binding === "granted";
    if ("fencingToken" in told && isBinding) session.fencingToken = Math.max(session.fencingToken, told.fencingToken);
    switch (told.told) {
      case "granted":
        break;
      case "accepted":
        session.inputIds.add(told.inputId);
        break;
      case "withdrawn":
        session.ends.set(told.inputId, "cancelled");
        break;
      case "taken":
        for (const inputId of told.inputIds) session.inputIds.add(inputId);
        break;
      case "appended":
        this.appendCount++;
        for (const key of told.keys) session.keys.add(key);
        for (const inputId of told.settledInputIds) session.ends.set(inputId, "answered");
        break;
      case "kept":
        this.keptCount++;
        for (const key of told.keys) session.kept.keys.add(key);
        if (!this.#mayBeLate) for (const inputId of told.settledInputIds) session.kept.ends.set(inputId, "answered");
        if (told.isEnd) session.kept.endedTurnIds.add(told.turnId);
        break;
      case "ended":
        session.endedTurnIds.add(told.turnId);
        for (const inputId of told.inputIds) session.ends.set(inputId, "answered");
        break;
    }
  }
}
