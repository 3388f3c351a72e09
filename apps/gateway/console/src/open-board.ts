import { endSentence } from "./transcript-blocks.ts";
import { happeningsBetween, worthAsking } from "./board.ts";
import type { Happening } from "./board.ts";
import type { FollowerDeps } from "./followed-session.ts";
import { sessionPath } from "./gateway-client.ts";
import type { RunningTurn, SessionItem, SessionPage, SessionRecords } from "./gateway-json.ts";
import { Poll } from "./poll.ts";

const turnsEveryMs = 2000;
/** Sessions change where turns run; what others do without one is seen by now and then. */
const sessionsEveryMs = 10_000;
const happeningCountMax = 200;
const pageSize = 50;

export interface OpenBoardListener {
  changed(): void;
  /** The gateway answers again, after it did not. */
  found(): void;
}

/** What goes on in the whole store, as far as the page looks. */
export class OpenBoard {
  readonly #deps: FollowerDeps;
  readonly #listener: OpenBoardListener;
  readonly #poll: Poll;
  readonly #controller = new AbortController();
  #turns: readonly RunningTurn[] | undefined;
  #readAtMs = 0;
  #sessions: readonly SessionItem[] = [];
  #nextCursor: string | undefined;
  #pageCount = 1;
  #sessionsReadAtMs: number | undefined;
  #happenings: readonly Happening[] = [];
  #missedUntilMs: number | undefined;

  constructor(deps: FollowerDeps, listener: OpenBoardListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#poll = new Poll(deps.host, {
      everyMs: () => turnsEveryMs,
      look: () => this.#look(),
      missed: (retryInMs) => {
        if (this.#missedUntilMs === undefined)
          this.tell({ tone: "bad", text: "The gateway does not answer; it is asked again until it does." });
        this.#missedUntilMs = deps.host.clock.monotonicMs() + retryInMs;
        listener.changed();
      },
    });
  }

  /** Absent until they were looked at. */
  get turns(): readonly RunningTurn[] | undefined {
    return this.#turns;
  }

  /** When the turns were looked at, on the page's clock. */
  get readAtMs(): number {
    return this.#readAtMs;
  }

  get sessions(): readonly SessionItem[] {
    return this.#sessions;
  }

  get hasMoreSessions(): boolean {
    return this.#nextCursor !== undefined;
  }

  /** Newest first. */
  get happenings(): readonly Happening[] {
    return this.#happenings;
  }

  /** When the gateway is asked again, on the page's clock; absent while it answers. */
  get missedUntilMs(): number | undefined {
    return this.#missedUntilMs;
  }

  tell(happening: Omit<Happening, "atMs">): void {
    this.#add([{ ...happening, atMs: this.#deps.host.clock.wallMs() }]);
  }

  #add(happenings: readonly Happening[]): void {
    if (happenings.length === 0) return;
    this.#happenings = [...happenings.toReversed(), ...this.#happenings].slice(0, happeningCountMax);
    this.#listener.changed();
  }

  hurry(): void {
    this.#sessionsReadAtMs = undefined;
    this.#poll.now();
  }

  pause(): void {
    this.#poll.pause();
  }

  resume(): void {
    this.#poll.resume();
  }

  close(): void {
    this.#controller.abort();
    this.#poll.close();
  }

  async readMoreSessions(): Promise<void> {
    this.#pageCount++;
    await this.#readSessions();
    this.#listener.changed();
  }

  async #look(): Promise<boolean> {
    const { client, host } = this.#deps;
    const { signal } = this.#controller;
    const answer = await client.json<{ turns: readonly RunningTurn[] }>("v1/turns", { signal });
    if (signal.aborted || answer.kind === "unreachable") return false;
    if (answer.kind === "refused") {
      this.tell({ tone: "bad", text: `${answer.problem.detail} (${answer.problem.code})` });
      return false;
    }
    if (this.#missedUntilMs !== undefined) {
      this.#missedUntilMs = undefined;
      this.tell({ tone: "good", text: "The gateway answers again." });
      this.#listener.found();
    }
    const before = this.#turns;
    this.#turns = answer.value.turns;
    this.#readAtMs = host.clock.monotonicMs();
    this.#add(happeningsBetween(before ?? [], this.#turns, host.clock.wallMs()));
    for (const turn of worthAsking(before ?? [], this.#turns)) void this.#askForEnd(turn);
    const namesOf = (turns: readonly RunningTurn[] = []): string => turns.map(({ turnId }) => turnId).join();
    const isDue = this.#readAtMs - (this.#sessionsReadAtMs ?? Number.NEGATIVE_INFINITY) >= sessionsEveryMs;
    if (isDue || namesOf(before) !== namesOf(this.#turns)) await this.#readSessions();
    this.#listener.changed();
    return true;
  }

  async #readSessions(): Promise<void> {
    const sessions: SessionItem[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < this.#pageCount; page++) {
      const after: string = cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const answer = await this.#deps.client.json<SessionPage>(`v1/sessions?limit=${pageSize}${after}`, {
        signal: this.#controller.signal,
      });
      if (answer.kind !== "answer") return;
      sessions.push(...answer.value.sessions);
      cursor = answer.value.nextCursor;
      if (cursor === undefined) break;
    }
    this.#sessions = sessions;
    this.#nextCursor = cursor;
    this.#sessionsReadAtMs = this.#deps.host.clock.monotonicMs();
  }

  /** A turn that stood badly is gone: how it ended is worth a line. */
  async #askForEnd({ session, turnId }: RunningTurn): Promise<void> {
    const answer = await this.#deps.client.json<SessionRecords>(sessionPath(session), {
      signal: this.#controller.signal,
    });
    if (answer.kind !== "answer") return;
    const turn = answer.value.turns.find((one) => one.turnId === turnId);
    if (turn?.outcome === undefined) return;
    const isGood = turn.outcome === "answered";
    const text = isGood ? "The turn was answered after all." : endSentence({ ...turn, outcome: turn.outcome });
    this.tell({ tone: isGood ? "good" : "bad", text, sessionId: session });
  }
}
