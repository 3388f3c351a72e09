import type { EntryBody } from "@turnkeeper/state-store";
import { reportDefect } from "../defect.ts";
import { untilAborted } from "../model-call.ts";

/** A conversation as its turn left it, the reviewer's own to keep and to change. */
export interface ReviewedConversation {
  readonly sessionId: string;
  /** What the model would be asked with, oldest first. */
  readonly bodies: readonly EntryBody[];
}

/**
 * Looks over a conversation in the background. It runs outside any turn: it has no lease, and nothing that it does is part
 * of the session. `signal` aborts once the session's next turn begins, or the agent closes: end soon then.
 */
export type Review = (conversation: ReviewedConversation, signal: AbortSignal) => Promise<void>;

interface RunningReviews {
  readonly abort: AbortController;
  readonly ended: Promise<unknown>;
}

/**
 * Reviews of conversations whose turn has been answered and whose session is free. There is one place where one begins,
 * and that is where the conversation is copied: whatever its turns do next, no review sees it, and what a review does to
 * its copy no turn sees.
 */
export class BackgroundReviews {
  readonly #reviews: readonly Review[];
  readonly #running = new Map<string, RunningReviews>();
  #isClosed = false;

  constructor(reviews: readonly Review[]) {
    this.#reviews = reviews;
  }

  /** To be called behind the turn's end, when its lease is free. Returns at once. */
  spawn(sessionId: string, bodies: readonly EntryBody[]): void {
    if (this.#reviews.length === 0 || this.#isClosed) return;
    this.cancel(sessionId);
    const abort = new AbortController();
    // Each has a copy of its own.
    const copies = this.#reviews.map((review) => ({ review, bodies: structuredClone(bodies) }));
    const ended = Promise.all(
      copies.map((copy) => this.#run(copy.review, { sessionId, bodies: copy.bodies }, abort.signal)),
    );
    const running = { abort, ended };
    this.#running.set(sessionId, running);
    void ended.then(() => {
      if (this.#running.get(sessionId) === running) this.#running.delete(sessionId);
    });
  }

  /** The session's next turn begins: what is still being looked over is out of date. */
  cancel(sessionId: string): void {
    this.#running.get(sessionId)?.abort.abort();
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  /** Aborts what runs and waits for it to end. Safe to repeat. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { abort } of this.#running.values()) abort.abort();
    await this.idle();
  }

  async #run(review: Review, conversation: ReviewedConversation, signal: AbortSignal): Promise<void> {
    // Never on the stack of whoever ended the turn.
    await Promise.resolve();
    if (signal.aborted) return;
    try {
      // One that hears no abort is left behind: it has nothing to spoil.
      await untilAborted(review(conversation, signal), signal);
    } catch (error) {
      if (!signal.aborted) reportDefect(error);
    }
  }
}
