/**
 * The agent's loop inside one turn.
 *
 * Owns PAIR-1: in every ended turn each stored tool call has exactly one stored result, after abort, crash and
 * compaction too. The loop appends an assistant's calls before the first of them runs and one result for each call,
 * whatever the tool does; what it cannot close any more (crash, lost lease, failed store), the store closes with
 * `outcome unknown` when it ends or settles the turn.
 */
import type { LanguageModelV3CallOptions } from "@ai-sdk/provider";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import type { AssistantBody, EntryBody, EntryDraft, StateStore, Usage } from "@turnkeeper/state-store";
import type { TurnEventBody } from "./events.ts";
import { callModel } from "./model-call.ts";
import type { ModelStep } from "./model-call.ts";
import { buildPrompt } from "./prompt.ts";
import { addUsage } from "./step-reader.ts";
import { answerTextOf } from "./stored-end.ts";
import type { RawToolCall, StepEvent } from "./step-reader.ts";
import { notStarted, prepareCall, runToolCall } from "./tool-call.ts";
import type { Approval, PreparedCall, ToolRunDeps } from "./tool-call.ts";
import { declarationOf } from "./tool-input.ts";
import type { ToolSet } from "./tool-input.ts";
import { isStoreFailure } from "./turn-writer.ts";
import { endingOf, interruptedEnding } from "./turn-machinery.ts";
import type { TurnEnding, TurnScope } from "./turn-machinery.ts";

export interface LoopDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly model: ResolvedModel;
  readonly tools: ToolSet;
  readonly approval: Approval;
  readonly emit: (event: TurnEventBody) => void;
}

export interface LoopSettings {
  readonly system: string | undefined;
  readonly workspace: string;
  readonly maxIterations: number;
  readonly modelAttempts: number;
  readonly silenceMs: number;
}

/** What a step leaves: the turn goes on with the next one, or it ends. */
type StepEnd = { readonly kind: "next" } | { readonly kind: "end"; readonly ending: TurnEnding };

/**
 * The agent's loop inside one turn: ask the model, run what it asks for, until it asks for nothing. It goes on on
 * what the model sent (calls or none), never on its finish reason. Each step is appended before the next one begins,
 * and an assistant's calls before the first of them runs, so a crash at any point leaves every call stored.
 */
export class TurnLoop {
  readonly #deps: LoopDeps;
  readonly #settings: LoopSettings;
  readonly #scope: TurnScope;
  /** The conversation as the model sees it; grows with what this turn appends. */
  readonly #bodies: EntryBody[];
  readonly #callIds = new Set<string>();
  #usage: Usage = {};
  #stepCount = 0;
  #answer: AssistantBody | undefined;

  constructor(deps: LoopDeps, settings: LoopSettings, scope: TurnScope, bodies: EntryBody[]) {
    this.#deps = deps;
    this.#settings = settings;
    this.#scope = scope;
    this.#bodies = bodies;
  }

  /** Never rejects: an error is an ending too, and it keeps what had come of the answer. */
  async run(): Promise<TurnEnding> {
    const ending = await this.#iterate().catch((error: unknown) => endingOf(error, this.#scope.interrupt));
    const text = this.#answer ? answerTextOf([{ body: this.#answer }]) : "";
    return { text, usage: this.#usage, ...ending };
  }

  async #iterate(): Promise<TurnEnding> {
    while (this.#stepCount < this.#settings.maxIterations) {
      this.#stepCount++;
      await this.#takeSteers();
      const end = await this.#finishStep(await this.#askModel());
      if (end.kind === "end") return end.ending;
      if (this.#scope.storeFailure) throw this.#scope.storeFailure;
    }
    const detail = `The turn made ${this.#settings.maxIterations} model calls without coming to an answer. Send a message to go on from here.`;
    return { outcome: "failed", reason: "MAX_ITERATIONS", detail };
  }

  /** Checkpoint: what came in meanwhile joins the conversation before the model is asked again. */
  async #takeSteers(): Promise<boolean> {
    const { store } = this.#deps;
    const { grant, turnId, sessionId, clock } = this.#scope;
    const waiting = await store.inbox.pending(sessionId);
    if (!waiting.some((input) => input.delivery === "steer" && input.runner === undefined)) return false;
    const taken = await store.inbox.takeSteers(grant, turnId);
    if (taken.kind === "stale-token")
      throw new CodedError("LEASE_LOST", `Session ${sessionId} was taken over; this turn's writes are refused.`);
    for (const input of taken.inputs) this.#bodies.push({ role: "user", text: input.text, inputId: input.inputId });
    clock.progress("steer");
    return taken.inputs.length > 0;
  }

  async #askModel(): Promise<ModelStep> {
    const { host, model, tools } = this.#deps;
    const { clock, interrupt } = this.#scope;
    const declarations = [...tools.values()].map(declarationOf);
    const request: LanguageModelV3CallOptions = {
      prompt: buildPrompt(this.#settings.system, this.#bodies, model.id),
      ...(declarations.length > 0 ? { tools: declarations } : {}),
    };
    const step = await callModel(
      {
        host,
        clock,
        model,
        signal: interrupt.signal,
        beforeSideEffect: () => this.#scope.beforeSideEffect(),
        onEvent: (event) => this.#emitStepEvent(event),
        onRetry: ({ attempt, delayMs, failure }) =>
          this.#deps.emit({ type: "model.retry", attempt, delayMs: Math.round(delayMs), reason: failure.message }),
      },
      { attempts: this.#settings.modelAttempts, silenceMs: this.#settings.silenceMs },
      request,
    );
    const { usage } = step.reader;
    if (usage) {
      this.#usage = addUsage(this.#usage, usage);
      this.#deps.emit({ type: "usage", ...usage });
    }
    return step;
  }

  #emitStepEvent(event: StepEvent): void {
    if (event.kind === "text") this.#deps.emit({ type: "text.delta", text: event.delta });
    else if (event.kind === "reasoning") this.#deps.emit({ type: "reasoning.delta", text: event.delta });
  }

  async #finishStep(step: ModelStep): Promise<StepEnd> {
    const { failure, reader } = step;
    if (step.stopped !== undefined)
      return {
        kind: "end",
        ending: { ...endingOf(step.stopped, this.#scope.interrupt), entries: this.#partial(step) },
      };
    if (failure) {
      const detail = reader.hasOutput
        ? `${failure.message} What had come is kept and marked as partial.`
        : failure.message;
      return { kind: "end", ending: { outcome: "failed", reason: failure.code, detail, entries: this.#partial(step) } };
    }
    const prepared = await Promise.all(
      reader.calls.map((call) => prepareCall(this.#deps.tools, { ...call, callId: this.#ownCallId(call) })),
    );
    const body = this.#assistantBody(step, prepared);
    const draft: EntryDraft = { key: `${this.#scope.turnId}/${this.#stepCount}/assistant`, body };
    this.#bodies.push(body);
    this.#answer = body;
    if (prepared.length === 0) {
      // A message that came while the answer was written is answered by this turn, not left for the next.
      if (!(await this.#hasSteers())) return { kind: "end", ending: { outcome: "answered", entries: [draft] } };
      await this.#scope.append([draft]);
      return { kind: "next" };
    }
    await this.#scope.append([draft]);
    await this.#runCalls(prepared);
    return this.#scope.interrupt.signal.aborted
      ? { kind: "end", ending: interruptedEnding(this.#scope.interrupt) }
      : { kind: "next" };
  }

  async #hasSteers(): Promise<boolean> {
    try {
      const waiting = await this.#deps.store.inbox.pending(this.#scope.sessionId);
      return waiting.some((input) => input.delivery === "steer" && input.runner === undefined);
    } catch (error) {
      // Asked with an answer in hand: its write is next, and that is where a store that fails must be met.
      if (isStoreFailure(error)) return false;
      throw error;
    }
  }

  /** The provider's id, made unique in the turn: some number their calls from zero in every step, some send none. */
  #ownCallId(call: RawToolCall): string {
    const wanted = call.callId || `call-${this.#stepCount}`;
    let callId = wanted;
    for (let copy = 2; this.#callIds.has(callId); copy++) callId = `${wanted}-${copy}`;
    this.#callIds.add(callId);
    return callId;
  }

  #assistantBody(step: ModelStep, prepared: readonly PreparedCall[]): AssistantBody {
    const { reader } = step;
    let index = 0;
    const parts = reader.parts(() => {
      const call = prepared[index++];
      return call && { callId: call.callId, name: call.name, input: call.parsed.stored };
    });
    return {
      role: "assistant",
      parts,
      model: this.#deps.model.id,
      ...(reader.finishReason === "length" ? { partial: true } : {}),
      ...(reader.usage ? { usage: reader.usage } : {}),
    };
  }

  /** What a cut step leaves in the transcript: its text, marked; never a call that was not whole. */
  #partial(step: ModelStep): EntryDraft[] {
    const parts = step.reader.parts(() => undefined);
    if (parts.length === 0) return [];
    this.#answer = { role: "assistant", parts, model: this.#deps.model.id, partial: true };
    return [{ key: `${this.#scope.turnId}/${this.#stepCount}/assistant`, body: this.#answer }];
  }

  /** Runs the calls in the order the model gave them; each result is appended as it comes, whatever happens. */
  async #runCalls(prepared: readonly PreparedCall[]): Promise<void> {
    const { host, approval, emit } = this.#deps;
    const { interrupt, turnId } = this.#scope;
    for (const call of prepared) {
      let startedAtMs: number | undefined;
      const deps: ToolRunDeps = {
        host,
        scope: this.#scope,
        workspace: this.#settings.workspace,
        approval,
        onApprovalRequested: (callId) => emit({ type: "approval.requested", callId }),
        onStarted: ({ callId, name, parsed }) => {
          startedAtMs = host.clock.monotonicMs();
          emit({ type: "tool.started", callId, name, input: parsed.stored });
        },
      };
      const isOver = interrupt.signal.aborted || this.#scope.storeFailure !== undefined;
      const body = isOver
        ? ({ role: "tool", callId: call.callId, name: call.name, ...notStarted } as const)
        : await runToolCall(deps, call);
      await this.#scope.append([{ key: `${turnId}/${call.callId}/result`, body }]);
      this.#bodies.push(body);
      if (startedAtMs === undefined) continue;
      const durationMs = Math.round(host.clock.monotonicMs() - startedAtMs);
      emit({
        type: "tool.finished",
        callId: call.callId,
        name: call.name,
        ok: body.status === "ok",
        output: body.output,
        durationMs,
      });
    }
  }
}
