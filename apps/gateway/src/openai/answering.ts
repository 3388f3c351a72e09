import { answerApproval, requestStop } from "@turnkeeper/agent-core";
import type { CallerTool, CallSettings, ModelSettings, RunOptions } from "@turnkeeper/agent-core";
import { callsOf, unansweredCalls } from "@turnkeeper/state-store";
import type { Entry, OpenTurn } from "@turnkeeper/state-store";
import type { GatewayParts } from "../gateway-parts.ts";
import { Refusal } from "../refusal.ts";
import { conversationOfKey } from "../session-key.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { HandedTurns } from "./handed-turns.ts";
import { OpenAnswer } from "./open-answer.ts";
import { inputIdBeside, sessionIdOfKey } from "./request-headers.ts";
import type { RequestHeaders } from "./request-headers.ts";
import { checkPairs, split, unfit } from "./said.ts";
import type { Conversation, Said, SplitConversation } from "./said.ts";
import { seedSession } from "./seeded-session.ts";
import { newTextOf } from "./stored-history.ts";

/** What a request of either form asks for. */
export interface Asked {
  readonly conversation: Conversation;
  readonly headers: RequestHeaders;
  readonly tools: readonly CallerTool[];
  readonly model: ModelSettings;
  /** Whether a session that nobody named is kept. */
  readonly isStored: boolean;
  /** Whether the client can go on with such a session, and so come back with the results of its calls. */
  readonly isResumable: boolean;
  /** The field that has the conversation: `messages`, `input`. */
  readonly param: string;
}

type Result = SplitConversation["results"][number];

const by = "openai client";

function settingsOf({ conversation, tools, model, headers: { sessionKey, traceParent } }: Asked): CallSettings {
  return {
    ...(conversation.instructions === undefined ? {} : { instructions: conversation.instructions }),
    ...(tools.length === 0 ? {} : { tools }),
    model,
    ...(sessionKey === undefined ? {} : { conversation: conversationOfKey(sessionKey) }),
    ...(traceParent === undefined ? {} : { traceParent }),
  };
}

function optionsOf(asked: Asked): RunOptions {
  const { inputId, onBusy } = asked.headers;
  return { settings: settingsOf(asked), onBusy, approval: "deny", ...(inputId === undefined ? {} : { inputId }) };
}

/**
 * Begins the answers to requests, each as a turn: of the session that is named, whose own transcript counts, or of a
 * fresh one that begins with what the request tells of the conversation.
 *
 * | the request                  | its session                 | is                                             |
 * | ---------------------------- | --------------------------- | ---------------------------------------------- |
 * | names no session             | fresh, seeded               | a turn; what it hands over ends it             |
 * | ends in a user's message     | named, free or busy         | a turn, by the busy policy                     |
 * |                              | named, waits for results    | a turn, once what waits is settled             |
 * | ends in results of calls     | named, waits for them       | the rest of that turn                          |
 * |                              | named, was told them        | the rest of that turn, again                   |
 * |                              | named, else                 | refused: `calls_settled`, `invalid_value`      |
 */
export class Answering {
  readonly #parts: GatewayParts;
  readonly #handed: HandedTurns;

  constructor(parts: GatewayParts, handed: HandedTurns) {
    this.#parts = parts;
    this.#handed = handed;
  }

  async begin(asked: Asked): Promise<OpenAnswer> {
    const { sessionId } = asked.headers;
    const parted = split(asked.conversation.said, asked.param);
    if (sessionId === undefined) return this.#beginFresh(asked, parted);
    const deps = { ...this.#parts, handed: this.#handed };
    const reader =
      parted.results.length > 0
        ? await this.#goOn(asked, sessionId, parted)
        : await this.#beginNamed(asked, sessionId, parted);
    return new OpenAnswer(deps, reader, { isResumable: true, isKept: true });
  }

  async #beginFresh(asked: Asked, { before, results, texts }: SplitConversation): Promise<OpenAnswer> {
    const { store, host, calls } = this.#parts;
    const { inputId } = asked.headers;
    const told: readonly Said[] = [...before, ...results];
    checkPairs(told, asked.param);
    const sessionId = inputId === undefined ? `chat-${host.random.id()}` : sessionIdOfKey(inputId);
    await seedSession(this.#parts, sessionId, told);
    try {
      // What ends in results has no new message: the model goes on from them.
      const options = { ...optionsOf(asked), goesOn: results.length > 0 };
      const turn = await calls.run(sessionId, texts.join("\n\n"), options);
      const isKept = asked.isStored || inputId !== undefined;
      const deps = { ...this.#parts, handed: this.#handed };
      return new OpenAnswer(deps, new AnswerReader(store, turn), { isResumable: asked.isResumable, isKept });
    } catch (error) {
      if (inputId === undefined) await store.sessions.delete(sessionId);
      throw error;
    }
  }

  async #beginNamed(asked: Asked, sessionId: string, parted: SplitConversation): Promise<AnswerReader> {
    const { store, calls } = this.#parts;
    const { inputId } = asked.headers;
    const known = inputId === undefined ? undefined : await store.inbox.read(sessionId, inputId);
    // A retry says what it said: the transcript has moved on since then.
    const wholes = parted.texts.map((_, index) => parted.texts.slice(index).join("\n\n"));
    const text =
      wholes.find((whole) => whole === known?.text) ??
      (known ? parted.texts.join("\n\n") : await newTextOf(store, sessionId, parted, asked.param));
    if (!known) await this.#letGo(sessionId);
    return new AnswerReader(store, await calls.run(sessionId, text, optionsOf(asked)));
  }

  /** Whoever says something new does not wait for results that it did not send, whichever gateway handed the calls over. */
  async #letGo(sessionId: string): Promise<void> {
    const [view] = await this.#parts.store.turns.running(sessionId);
    const turn = view?.turn;
    if (turn?.state !== "suspended" || unansweredCalls(turn).every((call) => call.resultUntilMs === undefined)) return;
    const stop = { hard: true, reason: "user-message", by: `${by} that said something else` } as const;
    await requestStop(this.#parts, sessionId, { ...stop, fencingToken: turn.fencingToken });
  }

  async #goOn(asked: Asked, sessionId: string, { results, texts }: SplitConversation): Promise<AnswerReader> {
    const { store, agent } = this.#parts;
    const [view] = await store.turns.running(sessionId);
    const turn = view?.turn;
    const isAsked = (callId: string): boolean => turn?.approvals?.some((one) => one.callId === callId) ?? false;
    if (turn?.state !== "suspended" || !results.every(({ callId }) => isAsked(callId)))
      return this.#tellAgain(asked, sessionId, results);
    const given = new Set(results.map(({ callId }) => callId));
    const missing = unansweredCalls(turn).filter(({ callId }) => !given.has(callId));
    if (missing.length > 0)
      throw unfit(asked.param, `These calls have no result: ${missing.map(({ callId }) => callId).join(", ")}.`);
    // Seen with the results: what is taken in at the next step.
    if (texts.length > 0) {
      // The same request again, after its answer was lost or the store refused the results, says it once.
      const inputId = inputIdBeside(turn.turnId, [...given], texts);
      await this.#parts.calls.run(sessionId, texts.join("\n\n"), { onBusy: "steer", inputId });
    }
    const reader = this.#handed.take(sessionId);
    const { turnId } = turn;
    const answers = results.map(({ callId, output }) => ({ callId, turnId, decision: "allow" as const, by, output }));
    if (!reader) {
      // The process that handed the calls over goes on with the turn, where it lives; else this one does.
      for (const answer of answers) await answerApproval(this.#parts, { ...answer, sessionId });
      return this.#follow(asked, turn, given);
    }
    for (const { callId, ...answer } of answers) await agent.answer(sessionId, callId, answer);
    return reader;
  }

  /** A retry of what was answered before is told the rest of that turn; results that came too late are refused. */
  async #tellAgain(asked: Asked, sessionId: string, results: readonly Result[]): Promise<AnswerReader> {
    const { entries } = await this.#parts.store.transcript.load(sessionId, { all: true, limit: 400 });
    const given = new Set(results.map(({ callId }) => callId));
    const turnId = entries.findLast(({ body }) => callsOf(body).some(({ callId }) => given.has(callId)))?.turnId;
    if (turnId === undefined) throw unfit(asked.param, "The session has no such call.");
    const stored = new Map(
      entries.flatMap(({ turnId: of, body }) => (of === turnId && body.role === "tool" ? [[body.callId, body]] : [])),
    );
    const isTold = results.every(({ callId, output }) => stored.get(callId)?.output === output);
    if (isTold) return this.#follow(asked, { sessionId, turnId }, given);
    throw new Refusal(409, "calls_settled", "The calls were settled before their results came; say what to do next.", {
      headers: { "x-should-retry": "false" },
    });
  }

  /** Joins the turn that has these calls, by the input that it answers. */
  async #follow(
    asked: Asked,
    { sessionId, turnId }: Pick<OpenTurn, "sessionId" | "turnId">,
    told: ReadonlySet<string>,
  ): Promise<AnswerReader> {
    const { store, calls } = this.#parts;
    const { entries } = await store.transcript.load(sessionId, { turnId, all: true });
    const { text, inputId } = inputOf(entries);
    const options: RunOptions = { settings: settingsOf(asked), inputId, approval: "deny", goesOn: true };
    return new AnswerReader(store, await calls.run(sessionId, text, options), told);
  }
}

function inputOf(entries: readonly Entry[]): { readonly text: string; readonly inputId: string } {
  for (const { body } of entries)
    if (body.role === "user" && body.inputId !== undefined) return { text: body.text, inputId: body.inputId };
  throw new Refusal(409, "calls_settled", "The turn of these calls answers no message any more.");
}
