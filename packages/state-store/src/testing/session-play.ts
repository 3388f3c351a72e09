/** What a script run knows of a session: enough to make sense of steps that speak of "the newest grant". */
import type { EntryDraft } from "../entry.ts";
import { callsOf } from "../entry.ts";
import type { Grant } from "../identity.ts";
import type { SessionRecords } from "../session.ts";
import type { AppendRequest } from "../transcript.ts";
import type { EndRequest } from "../turn.ts";
import { createComparable } from "./comparable.ts";
import { calls, results, says } from "./scene.ts";
import type { EntryKind, GrantAge } from "./script.ts";

/** A grant, with the turn that was begun under it last. */
export class GrantPlay {
  readonly grant: Grant;
  readonly runner: string;
  turnId: string;
  isRunning: boolean;
  #openCalls: readonly string[];

  constructor(
    grant: Grant,
    turn: {
      readonly runner: string;
      readonly turnId: string;
      readonly isRunning: boolean;
      readonly openCalls?: readonly string[];
    },
  ) {
    this.#openCalls = turn.openCalls ?? [];
    this.grant = grant;
    this.runner = turn.runner;
    this.turnId = turn.turnId;
    this.isRunning = turn.isRunning;
  }

  get openCalls(): readonly string[] {
    return this.#openCalls;
  }

  /** Begins another turn, whose calls are its own. */
  begins(turnId: string): void {
    this.turnId = turnId;
    this.#openCalls = [];
  }

  /** Drafts of these kinds; a result answers the oldest open call, and is a text where none is open. */
  drafts(keyPrefix: string, kinds: readonly EntryKind[]): readonly EntryDraft[] {
    const open = [...this.#openCalls];
    return kinds.map((kind, index) => {
      const key = `${keyPrefix}.${index}`;
      if (kind === "stray-result") return results(key, `call-stray-${key}`);
      const callId = kind === "result" ? open.shift() : undefined;
      if (callId !== undefined) return results(key, callId);
      if (kind !== "call") return says(key, `said in step ${key}`);
      open.push(`call-${key}`);
      return calls(key, `call-${key}`);
    });
  }

  /** Remembers what committed drafts opened and closed. */
  wrote(drafts: readonly EntryDraft[]): void {
    for (const { body } of drafts) {
      const opened = callsOf(body).map((call) => call.callId);
      const closed = body.role === "tool" ? body.callId : undefined;
      this.#openCalls = [...this.#openCalls, ...opened].filter((callId) => callId !== closed);
    }
  }
}

export class SessionPlay {
  readonly sessionId: string;
  /** Newest first. */
  readonly grants: GrantPlay[] = [];
  comparable: (answer: unknown) => unknown = createComparable();
  records: SessionRecords | undefined;
  greatestToken = 0;
  spooledCount = 0;
  lastAppend: AppendRequest | undefined;
  lastEnd: EndRequest | undefined;

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  /** The calls of a turn that have no result. */
  openCallsOf(turnId: string): readonly string[] {
    const bodies = (this.records?.entries ?? []).flatMap((entry) =>
      entry.turnId === turnId && !entry.late ? [entry.body] : [],
    );
    const closed = new Set(bodies.flatMap((body) => (body.role === "tool" ? [body.callId] : [])));
    return bodies.flatMap(callsOf).flatMap(({ callId }) => (closed.has(callId) ? [] : [callId]));
  }

  /** The grant of this age; one that was never given where there is none. */
  grantOf(age: GrantAge): GrantPlay {
    const grant = { sessionId: this.sessionId, holderId: "holder-nobody", fencingToken: 1_000_000 };
    return this.grants[age] ?? new GrantPlay(grant, { runner: "a", turnId: "turn-none", isRunning: false });
  }
}
