import { unansweredCalls } from "@turnkeeper/state-store";
import type { OpenTurn, SuspendedTurn } from "@turnkeeper/state-store";
import { passOverTheDead } from "./offer-input.ts";
import type { OfferDeps } from "./offer-input.ts";
import { deadGrantOf } from "./reaper.ts";

export interface LeftInputsDeps extends OfferDeps {
  /** Whether this process works on the session already: then nothing there waits for nobody. */
  readonly isServedHere: (sessionId: string) => boolean;
  /** Whether this agent can go on with a suspended turn: it has the tools that were asked about. */
  readonly canResume: (turn: OpenTurn) => boolean;
}

/** Most of what waits is waited for: so many sessions are looked at for each that is wanted. */
const looksPerSession = 10;
/** Sessions that wait, read at once by name and then looked at one by one, however many looks that takes. */
const namesMax = 10_000;

/** Finds the sessions whose inputs, or whose answered turns, wait for nobody, look by look. */
export class LeftInputs {
  readonly #deps: LeftInputsDeps;
  /** The names that are still to be looked at, the first one last. */
  #names: string[] = [];

  constructor(deps: LeftInputsDeps) {
    this.#deps = deps;
  }

  /** At most so many: answered turns, then inputs, those first that have waited longest. */
  async find(sessionCount: number): Promise<readonly string[]> {
    const { store, closing } = this.#deps;
    // What waits behind a suspended turn waits for that turn.
    const suspended = new Set<string>();
    const left: string[] = [];
    for (const { turn } of await store.turns.running()) {
      if (turn.state !== "suspended") continue;
      suspended.add(turn.sessionId);
      if (left.length < sessionCount && (await this.#isAnsweredAndLeft(turn))) left.push(turn.sessionId);
    }
    let lookCount = sessionCount * looksPerSession;
    let isFresh = false;
    while (left.length < sessionCount && lookCount > 0 && !closing.aborted) {
      const sessionId = this.#names.pop();
      if (sessionId === undefined) {
        if (isFresh) break;
        this.#names = [...(await store.inbox.waitingSessions(namesMax))].toReversed();
        isFresh = true;
        continue;
      }
      lookCount--;
      if (!suspended.has(sessionId) && (await this.#isLeft(sessionId))) left.push(sessionId);
    }
    return left;
  }

  /**
   * Whether a suspended turn has all its answers and nobody who asked for them. A process that asked and lives is woken, in
   * case the answer was lost on its way: it goes on with the turn.
   */
  async #isAnsweredAndLeft(turn: SuspendedTurn): Promise<boolean> {
    const { presence, canResume, isServedHere, closing } = this.#deps;
    if (closing.aborted || unansweredCalls(turn).length > 0) return false;
    if (isServedHere(turn.sessionId) || !canResume(turn)) return false;
    return (await presence.wake(turn.holder, turn.sessionId)) !== "woken";
  }

  /**
   * Whether an input of the session waits for nobody: no process that may live holds the session or is first in its
   * queue. Makes orphans of what dead processes were to run.
   */
  async #isLeft(sessionId: string): Promise<boolean> {
    const { store, isServedHere } = this.#deps;
    if (isServedHere(sessionId)) return false;
    const lease = await store.leases.read(sessionId);
    if (lease && !(await deadGrantOf(this.#deps, lease))) return false;
    await passOverTheDead(this.#deps, sessionId);
    // What tells of a child's end wants no turn of its own.
    const head = (await store.inbox.pending(sessionId)).find(({ child }) => child === undefined);
    return head !== undefined && head.runner === undefined;
  }
}
