import type { TurnEvent, TurnFinished } from "@turnkeeper/agent-core";
import type { Happening } from "./board.ts";
import { afterEvent, emptyConversation, lastSeqOf, readsMoreAfter, withMessages, withRecords } from "./conversation.ts";
import type { Conversation } from "./conversation.ts";
import { FollowedSession } from "./followed-session.ts";
import type { FollowerDeps } from "./followed-session.ts";
import { sessionPath } from "./gateway-client.ts";
import type { Answer } from "./gateway-client.ts";
import type { MessagePage, Problem, SessionRecords, SessionWhy } from "./gateway-json.ts";
import { Poll } from "./poll.ts";
import { SentMessage } from "./sent-message.ts";
import type { OnBusy } from "./sent-message.ts";

/** A page of the transcript; who wants to read further back asks for it. */
const pageSize = 200;

export interface OpenSessionListener {
  /** Anything of it is other than before. */
  changed(): void;
  /** For the list of happenings, and for who listens instead of looking. */
  happened(happening: Omit<Happening, "atMs">): void;
  /** It is not there any more. */
  deleted(): void;
}

/** What is known of a session's state, and on the page's clock since when. */
export interface KnownWhy {
  readonly why: SessionWhy;
  readonly readAtMs: number;
}

/**
 * A session that somebody looks at: its conversation as it is said, its state as it is asked for, and what was sent from
 * here. It mends itself after lost connections. Closing stops looking; turns go on.
 */
export class OpenSession {
  readonly sessionId: string;
  readonly #deps: FollowerDeps;
  readonly #listener: OpenSessionListener;
  #whyPoll: Poll | undefined;
  readonly #controller = new AbortController();
  #followed: FollowedSession | undefined;
  #conversation: Conversation = emptyConversation;
  #firstSeq = 0;
  #title: string | undefined;
  #known: KnownWhy | undefined;
  #sent: readonly SentMessage[] = [];
  #inputTexts = new Map<string, string>();
  #problem: Problem | undefined;
  #lostUntilMs: number | undefined;
  #hasLooked = false;
  #wasThere = false;
  #isDeleted = false;
  readonly #endedTurnIds = new Set<string>();
  #isReading = false;
  #readAgain: "more" | "all" | undefined;

  /** `isFresh`: nobody can know this id yet, so nothing is asked about it before its first message is sent. */
  constructor(deps: FollowerDeps, sessionId: string, listener: OpenSessionListener, isFresh = false) {
    this.#deps = deps;
    this.sessionId = sessionId;
    this.#listener = listener;
    if (isFresh) this.#hasLooked = true;
    else this.#look();
  }

  #look(): void {
    const { host } = this.#deps;
    if (this.#whyPoll) this.#whyPoll.now();
    else this.#whyPoll = new Poll(host, { everyMs: () => this.#lookEveryMs(), look: () => this.#lookAtState() });
  }

  /** Often where something goes on; seldom where there is nothing yet. */
  #lookEveryMs(): number {
    if (this.isNew || this.#isDeleted) return 10_000;
    return this.#isBusy ? 1000 : 3000;
  }

  get conversation(): Conversation {
    return this.#conversation;
  }

  get known(): KnownWhy | undefined {
    return this.#known;
  }

  get title(): string | undefined {
    return this.#title;
  }

  /** What was sent from here and is in no turn's transcript yet, or was refused. */
  get unanswered(): readonly SentMessage[] {
    const taken = this.#taken();
    return this.#sent.filter(({ message }) => !taken.has(message.inputId));
  }

  /** Messages of others that wait for a turn. */
  get queued(): readonly { readonly inputId: string; readonly text: string }[] {
    const taken = this.#taken();
    const own = new Set(this.#sent.map(({ message }) => message.inputId));
    return (this.#known?.why.pending ?? []).flatMap(({ inputId }) => {
      const text = this.#inputTexts.get(inputId);
      return text === undefined || taken.has(inputId) || own.has(inputId) ? [] : [{ inputId, text }];
    });
  }

  /** The last thing the gateway refused here. */
  get problem(): Problem | undefined {
    return this.#problem;
  }

  /** When the next connection is tried, on the page's clock; absent while one stands. */
  get lostUntilMs(): number | undefined {
    return this.#lostUntilMs;
  }

  get hasEarlier(): boolean {
    return this.#firstSeq > 1;
  }

  /** There is no such session yet: its first message makes it. */
  get isNew(): boolean {
    return this.#hasLooked && !this.#isDeleted && this.#followed === undefined && this.#sent.length === 0;
  }

  /** It was there, and was deleted, here or elsewhere: what was read of it is all there is. */
  get isDeleted(): boolean {
    return this.#isDeleted;
  }

  get isRunning(): boolean {
    const { live } = this.#conversation;
    return (live !== undefined && !live.isEnded) || this.#known?.why.turn != null;
  }

  get #isBusy(): boolean {
    return this.isRunning || (this.#known?.why.pending.length ?? 0) > 0 || this.#sent.length > 0;
  }

  #taken(): ReadonlySet<string> {
    return new Set(this.#conversation.messages.flatMap(({ inputId }) => (inputId === undefined ? [] : [inputId])));
  }

  send(text: string, onBusy: OnBusy): void {
    const message = { sessionId: this.sessionId, inputId: `console-${this.#deps.host.random.id()}`, text, onBusy };
    this.#problem = undefined;
    const sent = new SentMessage(this.#deps, message, (state) => this.#sentChanged(sent, state));
    this.#sent = [...this.#sent, sent];
    this.#listener.changed();
  }

  dismiss(sent: SentMessage): void {
    sent.close();
    this.#sent = this.#sent.filter((one) => one !== sent);
    this.#listener.changed();
  }

  #sentChanged(sent: SentMessage, state: SentMessage["state"]): void {
    if (state.kind === "accepted") {
      this.#isThere();
      this.#follow();
      this.#look();
    }
    if (state.kind === "refused") this.#refused(state.problem);
    if (state.kind === "ended") {
      const { outcome, detail } = state.event;
      if (state.event.turnId !== undefined) this.#tellEnd(state.event);
      if (outcome === "busy" || outcome === "cancelled")
        this.#listener.happened({
          tone: "warn",
          text: detail ?? `The message came back as ${outcome}.`,
          sessionId: this.sessionId,
        });
      // What ended without a turn's event is looked up.
      this.#follow();
      this.#read("more");
      this.#look();
      if (outcome !== "busy" && outcome !== "cancelled" && outcome !== "queued") sent.close();
    }
    this.#listener.changed();
  }

  async stop(hard: boolean): Promise<void> {
    await this.#act(sessionPath(this.sessionId, "/stop"), { hard });
  }

  async answer(callId: string, decision: "allow" | "deny"): Promise<void> {
    const turnId = this.#known?.why.turn?.turnId;
    await this.#act(sessionPath(this.sessionId, `/approvals/${encodeURIComponent(callId)}`), {
      decision,
      ...(turnId === undefined ? {} : { turnId }),
    });
  }

  /** Forgets it and everything in it. Whether it is gone. */
  async delete(): Promise<boolean> {
    const { signal } = this.#controller;
    const answer = await this.#deps.client.open(sessionPath(this.sessionId), { method: "DELETE", signal });
    const isGone = answer.kind === "answer" || (answer.kind === "refused" && answer.problem.code === "session_unknown");
    if (isGone) this.#gone();
    else this.#acted(answer);
    return isGone;
  }

  async #act(path: string, body: unknown): Promise<void> {
    const { signal } = this.#controller;
    this.#acted(await this.#deps.client.json(path, { method: "POST", body, signal }));
  }

  #acted(answer: Answer<unknown>): void {
    if (this.#controller.signal.aborted) return;
    this.#problem = undefined;
    if (answer.kind === "refused") this.#refused(answer.problem);
    else if (answer.kind === "unreachable")
      this.#refused({ status: 0, code: "unreachable", detail: "The gateway does not answer; nothing was changed." });
    this.#look();
    this.#listener.changed();
  }

  #refused(problem: Problem): void {
    this.#problem = problem;
    this.#listener.happened({ tone: "bad", text: `${problem.detail} (${problem.code})`, sessionId: this.sessionId });
  }

  #gone(): void {
    if (this.#isDeleted || !this.#wasThere || this.#controller.signal.aborted) return;
    this.#isDeleted = true;
    this.#known = undefined;
    this.#followed?.close();
    this.#followed = undefined;
    this.#lostUntilMs = undefined;
    this.#listener.happened({ tone: "warn", text: "The session was deleted.", sessionId: this.sessionId });
    this.#listener.deleted();
    this.#listener.changed();
  }

  /** One that was deleted and is there again is another one. */
  #isThere(): void {
    this.#wasThere = true;
    if (!this.#isDeleted) return;
    this.#isDeleted = false;
    this.#forget();
  }

  #forget(): void {
    this.#conversation = emptyConversation;
    this.#firstSeq = 0;
    this.#title = undefined;
  }

  forgetProblem(): void {
    this.#problem = undefined;
    this.#listener.changed();
  }

  /** Somebody is at the page again, or the network is. */
  hurry(): void {
    this.#followed?.hurry();
    for (const sent of this.#sent) if (sent.state.kind === "retrying") sent.again();
    this.#look();
  }

  pause(): void {
    this.#whyPoll?.pause();
  }

  resume(): void {
    this.#whyPoll?.resume();
    this.hurry();
  }

  close(): void {
    this.#controller.abort();
    this.#whyPoll?.close();
    this.#followed?.close();
    for (const sent of this.#sent) sent.close();
  }

  async #lookAtState(): Promise<boolean> {
    const { client, host } = this.#deps;
    const { signal } = this.#controller;
    const answer = await client.json<SessionWhy>(sessionPath(this.sessionId, "/why"), { signal });
    if (signal.aborted || answer.kind === "unreachable") return false;
    this.#hasLooked = true;
    if (answer.kind === "answer") {
      this.#isThere();
      this.#known = { why: answer.value, readAtMs: host.clock.monotonicMs() };
      this.#follow();
      if (answer.value.pending.some(({ inputId }) => !this.#inputTexts.has(inputId))) void this.#readRecords();
    } else {
      this.#known = undefined;
      if (answer.problem.code === "session_unknown") this.#gone();
      else this.#problem = answer.problem;
    }
    this.#listener.changed();
    return true;
  }

  /** Begins with the first sign that the session is there. */
  #follow(): void {
    this.#followed ??= new FollowedSession(this.#deps, this.sessionId, {
      opened: (isAnew) => {
        this.#lostUntilMs = undefined;
        // The place behind which the stream was to go on is gone: so is what was read up to it.
        if (isAnew && this.#firstSeq > 0) this.#forget();
        if (isAnew) void this.#begin();
        else this.#read("more");
        this.#listener.changed();
      },
      told: ({ event, id }) => this.#take(event, id),
      lost: (retryInMs) => {
        this.#lostUntilMs = this.#deps.host.clock.monotonicMs() + retryInMs;
        this.#listener.changed();
      },
      ended: (problem) => {
        this.#followed = undefined;
        if (problem.code === "session_unknown") this.#gone();
        else this.#problem = problem;
        this.#listener.changed();
      },
    });
  }

  #take(event: TurnEvent, id: string | undefined): void {
    this.#conversation = afterEvent(this.#conversation, event, id);
    const { sessionId } = this;
    if (readsMoreAfter(event)) this.#read(event.type === "compaction.finished" ? "all" : "more");
    if (readsMoreAfter(event) || event.type === "approval.requested" || event.type === "turn.stalled") this.#look();
    if (event.type === "turn.stalled")
      this.#listener.happened({
        tone: "warn",
        text: `Stalled: the last progress was ${event.lastProgress}.`,
        sessionId,
      });
    if (event.type === "approval.requested") {
      const what = event.awaits === "result" ? "Waits for its client's result of" : "Asks to run";
      this.#listener.happened({ tone: "info", text: `${what} ${event.name}.`, sessionId });
    }
    if (event.type === "turn.finished") this.#tellEnd(event);
    this.#listener.changed();
  }

  /** Both its session's stream and the call that asked for it tell a turn's end; whichever is first. */
  #tellEnd({ turnId = "", outcome, detail, reason }: TurnFinished): void {
    if (this.#endedTurnIds.has(turnId)) return;
    this.#endedTurnIds.add(turnId);
    const tone = outcome === "answered" ? "good" : outcome === "failed" ? "bad" : "warn";
    const why = detail ?? reason;
    const text = `Turn ${outcome}${why === undefined ? "" : `: ${why.replace(/\.$/, "")}`}.`;
    this.#listener.happened({ tone, text, sessionId: this.sessionId });
  }

  async #begin(): Promise<void> {
    const entryCount = await this.#readRecords();
    if (this.#firstSeq === 0) this.#firstSeq = Math.max(1, (entryCount ?? 0) - pageSize + 1);
    this.#read("more");
  }

  /** How many entries there are. */
  async #readRecords(): Promise<number | undefined> {
    const answer = await this.#get<SessionRecords>("");
    if (answer.kind !== "answer") return undefined;
    const { title, inputs, entryCount } = answer.value;
    this.#title = title;
    for (const { inputId, text } of inputs) this.#inputTexts.set(inputId, text);
    this.#conversation = withRecords(this.#conversation, answer.value);
    this.#listener.changed();
    return entryCount;
  }

  #get<Value>(rest: string): Promise<Answer<Value>> {
    return this.#deps.client.json<Value>(sessionPath(this.sessionId, rest), { signal: this.#controller.signal });
  }

  async readEarlier(): Promise<void> {
    const firstSeq = Math.max(1, this.#firstSeq - pageSize);
    if (await this.#readPages(firstSeq - 1, this.#firstSeq - 1)) this.#firstSeq = firstSeq;
    this.#listener.changed();
  }

  /** What was stored since, one reading at a time; a wish that comes meanwhile is one more. */
  #read(what: "more" | "all"): void {
    if (this.#isReading) {
      if (this.#readAgain !== "all") this.#readAgain = what;
      return;
    }
    this.#isReading = true;
    void this.#readUntilDone(what);
  }

  async #readUntilDone(first: "more" | "all"): Promise<void> {
    for (let what: "more" | "all" | undefined = first; what !== undefined; what = this.#readAgain) {
      this.#readAgain = undefined;
      const from = Math.max(0, this.#firstSeq - 1);
      await this.#readPages(what === "all" ? from : Math.max(from, lastSeqOf(this.#conversation)));
    }
    this.#isReading = false;
  }

  async #readPages(afterSeq: number, throughSeq = Number.POSITIVE_INFINITY): Promise<boolean> {
    let cursor: string | undefined = afterSeq === 0 ? undefined : String(afterSeq);
    for (;;) {
      const left = throughSeq === Number.POSITIVE_INFINITY ? pageSize : throughSeq - Number(cursor ?? 0);
      const query = `?limit=${Math.min(pageSize, Math.max(1, left))}${cursor === undefined ? "" : `&cursor=${cursor}`}`;
      const answer = await this.#get<MessagePage>(`/messages${query}`);
      if (this.#controller.signal.aborted || answer.kind !== "answer") return false;
      const { messages, nextCursor } = answer.value;
      this.#conversation = withMessages(this.#conversation, messages);
      this.#firstSeq ||= 1;
      this.#listener.changed();
      if (nextCursor === undefined || Number(nextCursor) >= throughSeq) return true;
      cursor = nextCursor;
    }
  }
}
