import type { PeriodicHandle, PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { StateStore } from "@turnkeeper/state-store";

/** How often a few of them are looked at. */
const lookEveryMs = 60_000;
/** So many at once, 3,000 an hour: each is a write, and turns write too. */
const sessionsPerLook = 50;

const prefix = "chat-";
/** A name that a gateway gave, of a fresh id or of an idempotency key's hash: whoever names a session means another. */
const isOurs = (sessionId: string): boolean => /^chat-(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{32})$/.test(sessionId);

export interface KeptSessionsDeps {
  readonly store: Pick<StateStore, "sessions">;
  readonly scheduler: Pick<PeriodicScheduler, "schedule">;
  /** Told of a look that failed; it is made again. */
  onError(error: unknown): void;
}

/**
 * Forgets the sessions that requests without a name began and that were kept (`store: true`, a response, an idempotency
 * key), once nobody has used them for a while; a few at a time. One with a turn that has not ended, or an input that
 * waits, is left alone, by the store, in the step that would delete it.
 */
export class KeptSessions {
  readonly #deps: KeptSessionsDeps;
  readonly #keepMs: number;
  readonly #periodic: PeriodicHandle;
  #after = "";

  constructor(deps: KeptSessionsDeps, keepMs: number) {
    this.#deps = deps;
    this.#keepMs = keepMs;
    this.#periodic = deps.scheduler.schedule(() => this.#look(), lookEveryMs, { name: "kept-sessions" });
  }

  async #look(): Promise<void> {
    const { sessions } = this.#deps.store;
    try {
      const sinceMs = (await sessions.nowMs()) - this.#keepMs;
      const found = await sessions.unchanged({ prefix, sinceMs, limit: sessionsPerLook, after: this.#after });
      for (const sessionId of found.filter(isOurs)) await sessions.delete(sessionId, { ifUnchangedSinceMs: sinceMs });
      // What was left alone is passed over, and looked at again the next time around.
      this.#after = found.length < sessionsPerLook ? "" : (found.at(-1) ?? "");
    } catch (error) {
      this.#deps.onError(error);
    }
  }

  async close(): Promise<void> {
    await this.#periodic.cancel({ waitMs: 1000 });
  }
}
