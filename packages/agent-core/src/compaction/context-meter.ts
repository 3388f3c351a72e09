import type { EntryBody } from "@turnkeeper/state-store";
import { entryTokens, plausibleTokens } from "./token-estimate.ts";

/**
 * How long a growing conversation is: what the provider counted last, and an estimate of what came since. A look costs
 * what came since the look before it, however long the conversation is.
 */
export class ContextMeter {
  #seenCount = 0;
  #estimate = 0;
  #tokens = 0;
  #isMeasured = false;

  /** About how many tokens a request with `bodies` has; `overheadTokens` is what goes with it and no provider counted. */
  tokensOf(bodies: readonly EntryBody[], overheadTokens: () => number): number {
    if (bodies.length < this.#seenCount) this.forget();
    for (; this.#seenCount < bodies.length; this.#seenCount++) {
      const body = bodies[this.#seenCount];
      if (body !== undefined) this.#add(body);
    }
    return this.#tokens + (this.#isMeasured ? 0 : overheadTokens());
  }

  /** The conversation was shortened: what was counted says nothing of it any more. */
  forget(): void {
    this.#seenCount = 0;
    this.#estimate = 0;
    this.#tokens = 0;
    this.#isMeasured = false;
  }

  #add(body: EntryBody): void {
    const tokens = entryTokens(body);
    this.#estimate += tokens;
    const counted = plausibleTokens(body, this.#estimate);
    if (counted === undefined) this.#tokens += tokens;
    else [this.#tokens, this.#isMeasured] = [counted, true];
  }
}
