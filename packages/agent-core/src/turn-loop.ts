/**
 * The agent's loop inside one turn.
 *
 * Owns PAIR-1: in every ended turn each stored tool call has exactly one stored result, after abort, crash and
 * compaction too. The loop appends an assistant's calls before the first of them runs and one result for each call,
 * whatever the tool does; what it cannot close any more (crash, lost lease, failed store), the store closes with
 * `outcome unknown` when it ends or settles the turn.
 */
import type { LanguageModelV3CallOptions, LanguageModelV3FunctionTool } from "@ai-sdk/provider";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { cacheScope } from "@turnkeeper/models";
import type { CacheConversation, ModelFailure, ResolvedModel } from "@turnkeeper/models";
import type { AskedCall, AssistantBody, EntryDraft, StateStore, ToolCallPart, Usage } from "@turnkeeper/state-store";
import { isCallersTool } from "./call-settings.ts";
import type { ModelSettings } from "./call-settings.ts";
import { contextLimits } from "./compaction/context-limits.ts";
import { estimateTokens } from "./compaction/token-estimate.ts";
import { TurnCompaction } from "./compaction/turn-compaction.ts";
import type { Conversation } from "./conversation.ts";
import { reportDefect } from "./defect.ts";
import type { TurnDelegation } from "./delegation/turn-delegation.ts";
import type { Guardrails } from "./guardrails.ts";
import type { TurnEventBody } from "./events.ts";
import { backoffMs, callModel, pause } from "./model-call.ts";
import type { EndedModelCall, ModelStep } from "./model-call.ts";
import type { ModelCallReport } from "./model-call-report.ts";
import { addUsage } from "./step-reader.ts";
import type { RawToolCall, StepEvent } from "./step-reader.ts";
import { Steers } from "./steers.ts";
import { ToolBatch } from "./tool-batch.ts";
import { prepareCall } from "./tool-call.ts";
import type { Approval, ApprovalPolicy, PreparedCall } from "./tool-call.ts";
import { declarationOf } from "./tool-input.ts";
import type { ToolSet } from "./tool-input.ts";
import { TurnAnswer } from "./turn-answer.ts";
import { budgetEnding } from "./turn-budget.ts";
import type { TurnBudget } from "./turn-budget.ts";
import { endingOf, interruptedEnding } from "./turn-machinery.ts";
import type { TurnEnding, TurnPause, TurnScope } from "./turn-machinery.ts";
import type { TurnSoFar } from "./turn-so-far.ts";

export interface LoopDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly model: ResolvedModel;
  readonly tools: ToolSet;
  readonly policy: ApprovalPolicy | undefined;
  readonly approval: Approval;
  readonly delegation?: TurnDelegation | undefined;
  /** The calls that this turn was suspended over, by id, with what was answered. */
  readonly asked: ReadonlyMap<string, AskedCall>;
  readonly emit: (event: TurnEventBody) => void;
  readonly onModelCall: (call: ModelCallReport) => void;
}

export interface LoopSettings {
  readonly system: string | undefined;
  readonly workspace: string;
  readonly maxIterations: number;
  readonly budget: TurnBudget;
  readonly modelAttempts: number;
  readonly toolConcurrency: number;
  readonly silenceMs: number;
  readonly model: ModelSettings;
  readonly conversationOf: ((sessionId: string) => CacheConversation["declared"]) | undefined;
  readonly compaction: { readonly threshold: number | undefined; readonly contextTimeoutMs: number };
}

/** What a key of every store, a path and an event's id can bear; some gateways pack a model's signature into the id. */
const callIdPattern = /^[\x21-\x7e]{1,1000}$/;

/** What a step leaves: the turn goes on with the next one, or it ends. */
type StepEnd = { readonly kind: "next" } | { readonly kind: "end"; readonly ending: TurnEnding | TurnPause };

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
  readonly #declarations: LanguageModelV3FunctionTool[];
  readonly #steers: Steers;
  /** The one that answers: the chosen one, until a fallback takes its place for the rest of the turn. */
  #model: ResolvedModel;
  #compaction: TurnCompaction;
  readonly #callIds: Set<string>;
  readonly #guardrails: Guardrails;
  #replacedCount: number;
  #usage: Usage;
  #stepCount: number;
  readonly #openCalls: readonly ToolCallPart[];
  readonly #answer: TurnAnswer;
  readonly #cacheScope: string;

  constructor(
    deps: LoopDeps,
    settings: LoopSettings,
    scope: TurnScope,
    conversation: Conversation,
    { callIds, guardrails, usage, stepCount, said, openCalls }: TurnSoFar,
  ) {
    this.#deps = deps;
    this.#settings = settings;
    this.#model = deps.model;
    this.#scope = scope;
    this.#conversation = conversation;
    this.#declarations = [...deps.tools.values()].map(declarationOf);
    this.#steers = new Steers(deps.store, scope);
    this.#callIds = new Set(callIds);
    this.#guardrails = guardrails;
    this.#replacedCount = conversation.replacedCount;
    this.#usage = usage;
    this.#stepCount = stepCount;
    this.#openCalls = openCalls;
    this.#answer = new TurnAnswer(said);
    this.#cacheScope = this.#findCacheScope();
    this.#compaction = this.#makeCompaction();
  }

  /** A declaration that fails must not fail the turn, nor share a cache with what it might have meant. */
  #findCacheScope(): string {
    const { sessionId } = this.#scope;
    try {
      return cacheScope({ sessionId, declared: this.#settings.conversationOf?.(sessionId) });
    } catch (error) {
      reportDefect(error);
      return cacheScope({ sessionId });
    }
  }

  #makeCompaction(): TurnCompaction {
    const { system = "", modelAttempts, compaction } = this.#settings;
    return new TurnCompaction(
      { ...this.#deps, model: this.#model, onUsage: (usage) => this.#addUsage(usage) },
      {
        contextTimeoutMs: compaction.contextTimeoutMs,
        modelAttempts,
        overheadTokens: () => estimateTokens(system + JSON.stringify(this.#declarations)),
      },
      contextLimits(this.#model.contextWindowTokens, compaction.threshold),
      this.#scope,
      this.#conversation,
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
    const resumed = await this.#finishOpenCalls();
    if (resumed.kind === "end") return resumed.ending;
    for (;;) {
      const spent = this.#budgetEnding();
      if (spent) return spent;
      this.#stepCount++;
      await this.#takeSteers();
      await this.#compaction.whenDue();
      let step = await this.#askModel();
      while ((await this.#compaction.mends(step)) || this.#fallsBack(step)) step = await this.#askModel();
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

  async #askModel(): Promise<ModelStep> {
    const { host, emit } = this.#deps;
    const { silenceMs } = this.#settings;
    const model = this.#model;
    const { clock, interrupt } = this.#scope;
    const request: LanguageModelV3CallOptions = {
      ...this.#modelSettings,
      prompt: this.#conversation.prompt(this.#settings.system),
      ...(this.#declarations.length > 0 ? { tools: this.#declarations } : {}),
      providerOptions: { turnkeeper: { cacheScope: this.#cacheScope } },
    };
    // A redirect cuts this request short, and nothing else of the turn.
    using phase = interrupt.enterPhase("model-request");
    const step = await callModel(
      {
        host,
        clock,
        model,
        signal: phase.signal,
        beforeSideEffect: async () => {
          await this.#scope.beforeSideEffect();
          phase.signal.throwIfAborted();
          for (const { inputId, child } of this.#steers.deliver())
            emit({ type: "steer.delivered", inputId, ...(child ? { childSessionId: child.sessionId } : {}) });
        },
        onEvent: (event) => this.#emitStepEvent(event),
        onEnded: (call) => this.#reportCall(model, call),
        onRetry: ({ attempt, delayMs, failure }) =>
          emit({ type: "model.retry", attempt, delayMs: Math.round(delayMs), reason: failure.message }),
      },
      {
        attempts: this.#settings.modelAttempts,
        silenceMs: model === this.#deps.model ? silenceMs : (model.silenceMs ?? silenceMs),
      },
      request,
    );
    if (step.reader.usage) this.#addUsage(step.reader.usage);
    return step;
  }

  /** A call that is forced once would be forced for ever: what follows the first step may answer. */
  get #modelSettings(): ModelSettings {
    const { toolChoice, ...model } = this.#settings.model;
    if (toolChoice === undefined || this.#declarations.length === 0) return model;
    const isForced = toolChoice.type === "required" || toolChoice.type === "tool";
    return isForced && this.#stepCount > 1 ? model : { ...model, toolChoice };
  }

  /**
   * Whether another model answers in the place of one that cannot, for the rest of the turn. Only before anything of the
   * answer was seen: two models' halves are no answer.
   */
  #fallsBack({ failure, reader, stopped }: ModelStep): boolean {
    const { id: from, fallback } = this.#model;
    if (!fallback || !failure?.isOfRoute || stopped !== undefined) return false;
    if (reader.hasOutput || this.#answer.goOnCount > 0) return false;
    this.#deps.emit({ type: "model.fallback", from, to: fallback.id, reason: failure.message });
    this.#model = fallback;
    this.#conversation.addressTo(fallback.id);
    this.#compaction = this.#makeCompaction();
    return true;
  }

  #reportCall({ id: model }: ResolvedModel, { startedAtMs, firstOutputMs, step }: EndedModelCall): void {
    const { sessionId, turnId } = this.#scope;
    const { reader, failure, stopped } = step;
    const { finishReason, usage } = reader;
    this.#deps.onModelCall({
      sessionId,
      turnId,
      model,
      startedAtMs,
      endedAtMs: this.#deps.host.clock.wallMs(),
      ...(firstOutputMs === undefined ? {} : { firstOutputMs }),
      ...(finishReason === undefined ? {} : { finishReason }),
      ...(usage === undefined ? {} : { usage }),
      ...(failure ? { failure: failure.code } : stopped === undefined ? {} : { failure: "stopped" }),
    });
  }

  #addUsage(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage);
    this.#deps.emit({ type: "usage", ...usage });
  }

  #emitStepEvent(event: StepEvent): void {
    if (event.kind === "text") this.#deps.emit({ type: "text.delta", text: event.delta });
    else if (event.kind === "reasoning") this.#deps.emit({ type: "reasoning.delta", text: event.delta });
  }

  async #finishStep(step: ModelStep): Promise<StepEnd> {
    const { failure, reader, stopped } = step;
    if (stopped !== undefined) return this.#finishStopped(step, stopped);
    if (failure) return this.#finishFailed(step, failure);
    const prepared = await Promise.all(
      reader.calls.map((call) => prepareCall(this.#deps.tools, { ...call, callId: this.#ownCallId(call) })),
    );
    if (prepared.length === 0) return this.#finishAnswer(step);
    const draft = this.#draftOf(step, { prepared });
    await this.#scope.append([draft]);
    this.#answer.isWhole();
    return this.#finishCalls(prepared);
  }

  /** A turn that goes on after it was suspended begins with the calls that it was suspended over. */
  async #finishOpenCalls(): Promise<StepEnd> {
    if (this.#openCalls.length === 0) return { kind: "next" };
    const prepared = await Promise.all(
      this.#openCalls.map(({ callId, name, input }) =>
        prepareCall(this.#deps.tools, { callId, name, inputText: JSON.stringify(input) }),
      ),
    );
    const end = await this.#finishCalls(prepared);
    if (this.#scope.storeFailure) throw this.#scope.storeFailure;
    return end;
  }

  async #finishCalls(prepared: readonly PreparedCall[]): Promise<StepEnd> {
    const batch = await this.#runCalls(prepared);
    const { halt, asking, waits } = batch;
    if (this.#scope.interrupt.signal.aborted) return { kind: "end", ending: interruptedEnding(this.#scope.interrupt) };
    if (asking.length + waits.length > 0) return { kind: "end", ending: this.#pauseOver(batch) };
    if (!halt) return { kind: "next" };
    const reason = `GUARDRAIL_${halt.rule.toUpperCase().replaceAll("-", "_")}`;
    return { kind: "end", ending: { outcome: "failed", reason, detail: halt.detail } };
  }

  #pauseOver({ asking, waits, ifStopped }: ToolBatch): TurnPause {
    const { turnId } = this.#scope;
    return {
      outcome: "suspended",
      asks: asking.map(({ callId, name, parsed, tool }) => ({
        callId,
        name,
        input: parsed.stored,
        ...(tool && isCallersTool(tool) ? { awaits: "result" } : {}),
      })),
      waits,
      ifStopped: ifStopped.map((body): EntryDraft => ({ key: `${turnId}/${body.callId}/result`, body })),
    };
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
    await pause({ host, clock, signal: interrupt.signal }, delayMs);
    return { kind: "next" };
  }

  /** The provider's id, made unique in the turn: some number calls from zero in every step, send none, or what no key can be. */
  #ownCallId(call: RawToolCall): string {
    const wanted = callIdPattern.test(call.callId) ? call.callId : `call-${this.#stepCount}`;
    let callId = wanted;
    for (let copy = 2; this.#callIds.has(callId); copy++) callId = `${wanted}-${copy}`;
    this.#callIds.add(callId);
    return callId;
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

  async #runCalls(prepared: readonly PreparedCall[]): Promise<ToolBatch> {
    const { host, delegation, emit } = this.#deps;
    if (this.#conversation.replacedCount > this.#replacedCount) this.#guardrails.contextReplaced();
    this.#replacedCount = this.#conversation.replacedCount;
    const batch = new ToolBatch(
      {
        host,
        verdicts: this.#deps,
        delegation,
        emit,
        guardrails: this.#guardrails,
        scope: this.#scope,
        workspace: this.#settings.workspace,
        onResult: (_call, body) => this.#conversation.add(body),
        keepLate: (draft) => this.#keepLate(draft),
      },
      prepared,
      this.#settings.toolConcurrency,
    );
    await batch.run();
    return batch;
  }

  /**
   * Through the spool, since by then the turn's lease may be anybody's: whoever has the session next stores it as late.
   * Nobody waits for it, and the store says itself when it cannot keep it.
   */
  #keepLate(draft: EntryDraft): void {
    const { grant, turnId } = this.#scope;
    this.#deps.store.spool.keep({ grant, turnId, entries: [draft] }).catch(reportDefect);
  }
}
