import type { EntryBody } from "@turnkeeper/state-store";
import { entryTokens, measuredTokens } from "./token-estimate.ts";

function measured(body: EntryBody): number | undefined {
  return body.role === "assistant" && body.usage ? measuredTokens(body.usage) : undefined;
}

/**
 * How long a growing conversation is: what the provider counted last, and an estimate of what came since. A look costs
 * what came since the look before it, however long the conversation is.
 */
export class ContextMeter {
  #seenCount = 0;
  #tokens = 0;
  #isMeasured = false;

  /** About how many tokens a request with `bodies` has; `overheadTokens` is what goes with it and no provider counted. */
  tokensOf(bodies: readonly EntryBody[], overheadTokens: () => number): number {
    if (bodies.length < this.#seenCount) this.forget();
    if (this.#seenCount === 0) this.#start(bodies);
    for (; this.#seenCount < bodies.length; this.#seenCount++) {
      const body = bodies[this.#seenCount];
      if (body !== undefined) this.#add(body);
    }
    return this.#tokens + (this.#isMeasured ? 0 : overheadTokens());
  }

  /** The conversation was shortened: what was counted says nothing of it any more. */
  forget(): void {
    this.#seenCount = 0;
    this.#tokens = 0;
    this.#isMeasured = false;
  }

  /** What stands before the newest count is in it, and need not be looked at. */
  #start(bodies: readonly EntryBody[]): void {
    this.#seenCount = Math.max(
      0,
      bodies.findLastIndex((body) => measured(body) !== undefined),
    );
  }

  #add(body: EntryBody): void {
    const counted = measured(body);
    if (counted === undefined) this.#tokens += entryTokens(body);
    else [this.#tokens, this.#isMeasured] = [counted, true];
  }
}
