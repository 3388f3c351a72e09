/**
 * The agent's loop inside one turn.
 *
 * Owns PAIR-1: in every ended turn each stored tool call has exactly one stored result, after abort, crash and
 * compaction too. The loop appends an assistant's calls before the first of them runs and one result for each call,
 * whatever the tool does; what it cannot close any more (crash, lost lease, failed store), the store closes with
 * `outcome unknown` when it ends or settles the turn.
 */
import { CodedError } from "@turnkeeper/kernel";
import type { ModelFailure, ResolvedModel } from "@turnkeeper/models";
import type { AssistantBody, EntryDraft, Usage } from "@turnkeeper/state-store";
import { AnsweringModel } from "./answering-model.ts";
import type { AnsweringModelSettings } from "./answering-model.ts";
import type { Conversation } from "./conversation.ts";
import { backoffMs, pause } from "./model-call.ts";
import type { ModelStep } from "./model-call.ts";
import type { ModelCallReport } from "./model-call-report.ts";
import { addUsage } from "./step-reader.ts";
import { Steers } from "./steers.ts";
import type { PreparedCall } from "./tool-call.ts";
import { TurnAnswer } from "./turn-answer.ts";
import { budgetEnding } from "./turn-budget.ts";
import type { TurnBudget } from "./turn-budget.ts";
import { TurnCalls } from "./turn-calls.ts";
import type { StepEnd, TurnCallsDeps, TurnCallsSettings } from "./turn-calls.ts";
import { endingOf } from "./turn-ending.ts";
import type { TurnScope } from "./turn-machinery.ts";
import type { TurnEnding, TurnPause } from "./turn-ending.ts";
import type { TurnSoFar } from "./turn-so-far.ts";

export interface LoopDeps extends TurnCallsDeps {
  readonly model: ResolvedModel;
  readonly onModelCall: (call: ModelCallReport) => void;
}

export interface LoopSettings extends AnsweringModelSettings, TurnCallsSettings {
  readonly maxIterations: number;
  readonly budget: TurnBudget;
}

/**
 * The agent's loop inside one turn: ask the model, run what it asks for, until it asks for nothing. It goes on on
 * what the model sent (calls or none), never on its finish reason. Each step is appended before the next one begins,
 * and an assistant's calls before the first of them runs, so a crash at any point leaves every call stored.
 */
export class TurnLoop {
  readonly #deps: LoopDeps;
  readonly #settings: LoopSettings;
  readonly #scope: TurnScope;
  /** What the model is asked with; grows with what this turn appends. */
  readonly #conversation: Conversation;
  readonly #steers: Steers;
  readonly #model: AnsweringModel;
  readonly #calls: TurnCalls;
  #usage: Usage;
  #stepCount: number;
  readonly #answer: TurnAnswer;

  constructor(deps: LoopDeps, settings: LoopSettings, scope: TurnScope, conversation: Conversation, soFar: TurnSoFar) {
    this.#deps = deps;
    this.#settings = settings;
    this.#scope = scope;
    this.#conversation = conversation;
    this.#steers = new Steers(deps.store, scope);
    this.#usage = soFar.usage;
    this.#stepCount = soFar.stepCount;
    this.#answer = new TurnAnswer(soFar.said);
    this.#calls = new TurnCalls(deps, settings, scope, conversation, soFar);
    this.#model = new AnsweringModel(
      { ...deps, steers: this.#steers, onUsage: (spent) => this.#addUsage(spent) },
      settings,
      scope,
      conversation,
    );
  }

  /** Never rejects: an error is an ending too, and it keeps what had come of the answer. */
  async run(): Promise<TurnEnding | TurnPause> {
    const ending = await this.#iterate().catch((error: unknown) => endingOf(error, this.#scope.interrupt));
    const { text } = this.#answer;
    if (ending.outcome === "suspended") return { ...ending, usage: this.#usage };
    return { text, usage: this.#usage, ...this.#sayingWhatWasNotSeen(ending) };
  }

  async #iterate(): Promise<TurnEnding | TurnPause> {
    const resumed = await this.#calls.runOpen();
    if (resumed.kind === "end") return resumed.ending;
    for (;;) {
      const spent = this.#budgetEnding();
      if (spent) return spent;
      this.#stepCount++;
      await this.#takeSteers();
      const step = await this.#model.step({ isFirst: this.#stepCount === 1, isGoingOn: this.#answer.goOnCount > 0 });
      const end = await this.#finishStep(step);
      if (end.kind === "end") return end.ending;
      if (this.#scope.storeFailure) throw this.#scope.storeFailure;
    }
  }

  #budgetEnding(): TurnEnding | undefined {
    return budgetEnding(this.#settings, { stepCount: this.#stepCount, usage: this.#usage });
  }

  /** A message that was taken into the turn and came into no request is told of: it must be sent again. */
  #sayingWhatWasNotSeen(ending: TurnEnding): TurnEnding {
    const count = this.#steers.undeliveredCount;
    if (count === 0) return ending;
    const what = count === 1 ? "A message that came meanwhile was" : `${count} messages that came meanwhile were`;
    return { ...ending, detail: `${ending.detail ?? ""} ${what} not seen by the model; send it again.`.trim() };
  }

  /** Checkpoint: what came in meanwhile joins the conversation before the model is asked again. */
  async #takeSteers(): Promise<boolean> {
    const inputs = await this.#steers.take();
    for (const { text, inputId } of inputs) this.#conversation.add({ role: "user", text, inputId });
    return inputs.length > 0;
  }

  #addUsage(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage);
    this.#deps.emit({ type: "usage", ...usage });
  }

  async #finishStep(step: ModelStep): Promise<StepEnd> {
    const { failure, reader, stopped } = step;
    if (stopped !== undefined) return this.#finishStopped(step, stopped);
    if (failure) return this.#finishFailed(step, failure);
    const prepared = await this.#calls.prepare(reader.calls, this.#stepCount);
    if (prepared.length === 0) return this.#finishAnswer(step);
    const draft = this.#draftOf(step, { prepared });
    await this.#scope.append([draft]);
    this.#answer.isWhole();
    return this.#calls.run(prepared);
  }

  /** What broke off in the middle of an answer is gone on with; anything else ends the turn. */
  async #finishFailed(step: ModelStep, failure: ModelFailure): Promise<StepEnd> {
    const delayMs = failure.retryable ? backoffMs(this.#deps.host, failure, this.#answer.goOnCount + 1) : undefined;
    if (delayMs !== undefined && this.#mayGoOn(step)) return this.#goOn(step, failure.message, delayMs);
    const detail = step.reader.hasOutput
      ? `${failure.message} What had come is kept and marked as partial.`
      : failure.message;
    return { kind: "end", ending: { outcome: "failed", reason: failure.code, detail, entries: this.#partial(step) } };
  }

  /** A stop ends the turn; a redirect keeps what had come, marked, and the turn goes on with the message that cut it. */
  async #finishStopped(step: ModelStep, stopped: unknown): Promise<StepEnd> {
    const { interrupt } = this.#scope;
    const entries = this.#partial(step);
    if (!CodedError.is(stopped, "REDIRECTED") || interrupt.signal.aborted)
      return { kind: "end", ending: { ...endingOf(stopped, interrupt), entries } };
    if (entries.length > 0) await this.#scope.append(entries);
    this.#answer.isWhole();
    return { kind: "next" };
  }

  /** The model asked for nothing more, unless its answer was cut or a message came while it was written. */
  async #finishAnswer(step: ModelStep): Promise<StepEnd> {
    const isCut = step.reader.finishReason === "length";
    if (isCut && this.#mayGoOn(step))
      return this.#goOn(step, "The answer was cut at the model's output limit; the rest is asked for.", 0);
    const draft = this.#draftOf(step, { isPartial: isCut });
    const ending: TurnEnding = { outcome: "answered", ...this.#cutOf(step) };
    const isSpent = this.#budgetEnding() !== undefined;
    const mustGoOn = !isSpent && this.#answer.mustGoOn(step);
    if (!mustGoOn && (isSpent || !(await this.#steers.areWaiting())))
      return { kind: "end", ending: { ...ending, entries: [draft] } };
    await this.#scope.append([draft]);
    if (mustGoOn) this.#answer.goOn();
    else this.#answer.isWhole();
    // Whoever sent the message may have taken it back by now.
    const isNext = mustGoOn || (this.#scope.storeFailure === undefined && (await this.#takeSteers()));
    return isNext ? { kind: "next" } : { kind: "end", ending };
  }

  /** What an answer says of itself that is not whole. */
  #cutOf({ reader: { finishReason } }: ModelStep): Pick<TurnEnding, "reason" | "detail"> {
    if (finishReason === "content-filter")
      return { reason: "content-filter", detail: "The provider's filter cut the answer: it is not whole." };
    if (finishReason !== "length") return {};
    const isWanted = this.#settings.model.maxOutputTokens !== undefined;
    const where = isWanted ? "after as many tokens as were asked for" : "at the model's output limit, again and again";
    return { reason: "output-limit", detail: `The answer was cut ${where}: it is not whole.` };
  }

  #mayGoOn(step: ModelStep): boolean {
    // A limit that the caller set is an end, not an accident.
    if (step.reader.finishReason === "length" && this.#settings.model.maxOutputTokens !== undefined) return false;
    return this.#answer.mayGoOn(step) && this.#budgetEnding() === undefined;
  }

  /** Keeps what came of a cut answer, marked, and has the model go on from there in the next step. */
  async #goOn(step: ModelStep, reason: string, delayMs: number): Promise<StepEnd> {
    const { host, emit } = this.#deps;
    const { clock, interrupt } = this.#scope;
    this.#answer.goOn();
    await this.#scope.append(this.#partial(step));
    emit({ type: "model.retry", attempt: this.#answer.goOnCount, delayMs: Math.round(delayMs), reason });
    await pause({ host, clock, signal: interrupt.signal }, { ms: delayMs, attempt: this.#answer.goOnCount });
    return { kind: "next" };
  }

  /** The step as the next entry of the conversation. */
  #draftOf(
    { reader }: ModelStep,
    { prepared = [], isPartial = false }: { readonly prepared?: readonly PreparedCall[]; readonly isPartial?: boolean },
  ): EntryDraft {
    let index = 0;
    const parts = reader.parts(() => {
      const call = prepared[index++];
      return call && { callId: call.callId, name: call.name, input: call.parsed.stored };
    });
    const body: AssistantBody = {
      role: "assistant",
      parts,
      model: this.#model.id,
      ...(isPartial ? { partial: true } : {}),
      ...(reader.usage ? { usage: reader.usage } : {}),
    };
    this.#answer.add(body, this.#conversation.bodies.at(-1));
    this.#conversation.add(body);
    return { key: `${this.#scope.turnId}/${this.#stepCount}/assistant`, body };
  }

  /** What a cut step leaves in the transcript: its text, marked; never a call that was not whole. */
  #partial(step: ModelStep): EntryDraft[] {
    const isNothing = step.reader.parts(() => undefined).length === 0;
    return isNothing ? [] : [this.#draftOf(step, { isPartial: true })];
  }
}
