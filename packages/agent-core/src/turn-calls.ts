import type { Host } from "@turnkeeper/kernel";
import type { EntryDraft, StateStore, ToolCallPart } from "@turnkeeper/state-store";
import { isCallersTool } from "./call-settings.ts";
import type { Conversation } from "./conversation.ts";
import { reportDefect } from "./defect.ts";
import type { TurnDelegation } from "./delegation/turn-delegation.ts";
import type { TurnEventBody } from "./events.ts";
import type { Guardrails } from "./guardrails.ts";
import type { RawToolCall } from "./step-reader.ts";
import { ToolBatch } from "./tool-batch.ts";
import { prepareCall } from "./tool-call.ts";
import type { PreparedCall, VerdictDeps } from "./tool-call.ts";
import type { ToolSet } from "./tool-input.ts";
import { interruptedEnding } from "./turn-ending.ts";
import type { TurnScope } from "./turn-machinery.ts";
import type { TurnEnding, TurnPause } from "./turn-ending.ts";
import type { TurnSoFar } from "./turn-so-far.ts";

/** What a key of every store, a path and an event's id can bear; some gateways pack a model's signature into the id. */
const callIdPattern = /^[\x21-\x7e]{1,1000}$/;

/** What a step leaves: the turn goes on with the next one, or it ends. */
export type StepEnd = { readonly kind: "next" } | { readonly kind: "end"; readonly ending: TurnEnding | TurnPause };

export interface TurnCallsDeps extends VerdictDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly tools: ToolSet;
  readonly delegation?: TurnDelegation | undefined;
  readonly emit: (event: TurnEventBody) => void;
}

export interface TurnCallsSettings {
  readonly workspace: string;
  readonly toolConcurrency: number;
}

/**
 * The tool calls of one turn, over all its steps: each has an id of its own, counts for the guardrails, and leads to the
 * next step or to the turn's end.
 */
export class TurnCalls {
  readonly #deps: TurnCallsDeps;
  readonly #settings: TurnCallsSettings;
  readonly #scope: TurnScope;
  readonly #conversation: Conversation;
  readonly #callIds: Set<string>;
  readonly #guardrails: Guardrails;
  readonly #open: readonly ToolCallPart[];
  #replacedCount: number;

  constructor(
    deps: TurnCallsDeps,
    settings: TurnCallsSettings,
    scope: TurnScope,
    conversation: Conversation,
    { callIds, guardrails, openCalls }: Pick<TurnSoFar, "callIds" | "guardrails" | "openCalls">,
  ) {
    this.#deps = deps;
    this.#settings = settings;
    this.#scope = scope;
    this.#conversation = conversation;
    this.#callIds = new Set(callIds);
    this.#guardrails = guardrails;
    this.#open = openCalls;
    this.#replacedCount = conversation.replacedCount;
  }

  /** The calls of a step as they are stored and run: with their tools, and checked; nothing runs yet. */
  prepare(calls: readonly RawToolCall[], stepCount: number): Promise<readonly PreparedCall[]> {
    this.#guardrails.stepBegins();
    return Promise.all(
      calls.map((call) => prepareCall(this.#deps.tools, { ...call, callId: this.#ownId(call, stepCount) })),
    );
  }

  /** A turn that goes on after it was suspended begins with the calls that it was suspended over. */
  async runOpen(): Promise<StepEnd> {
    if (this.#open.length === 0) return { kind: "next" };
    const prepared = await Promise.all(
      this.#open.map(({ callId, name, input }) =>
        prepareCall(this.#deps.tools, { callId, name, inputText: JSON.stringify(input) }),
      ),
    );
    const end = await this.run(prepared);
    if (this.#scope.storeFailure) throw this.#scope.storeFailure;
    return end;
  }

  /** Runs the calls of a step, which are stored, to their results or to where the turn must wait for somebody. */
  async run(prepared: readonly PreparedCall[]): Promise<StepEnd> {
    const batch = this.#batchOf(prepared);
    await batch.run();
    const { halt, asking, waits } = batch;
    if (this.#scope.interrupt.signal.aborted) return { kind: "end", ending: interruptedEnding(this.#scope.interrupt) };
    if (asking.length + waits.length > 0) return { kind: "end", ending: this.#pauseOver(batch) };
    if (!halt) return { kind: "next" };
    const reason = `GUARDRAIL_${halt.rule.toUpperCase().replaceAll("-", "_")}`;
    return { kind: "end", ending: { outcome: "failed", reason, detail: halt.detail } };
  }

  /** The provider's id, made unique in the turn: some number calls from zero in every step, send none, or what no key can be. */
  #ownId(call: RawToolCall, stepCount: number): string {
    const wanted = callIdPattern.test(call.callId) ? call.callId : `call-${stepCount}`;
    let callId = wanted;
    for (let copy = 2; this.#callIds.has(callId); copy++) callId = `${wanted}-${copy}`;
    this.#callIds.add(callId);
    return callId;
  }

  #batchOf(prepared: readonly PreparedCall[]): ToolBatch {
    const { host, delegation, emit } = this.#deps;
    if (this.#conversation.replacedCount > this.#replacedCount) this.#guardrails.contextReplaced();
    this.#replacedCount = this.#conversation.replacedCount;
    return new ToolBatch(
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

  /**
   * Through the spool, since by then the turn's lease may be anybody's: whoever has the session next stores it as late.
   * Nobody waits for it, and the store says itself when it cannot keep it.
   */
  #keepLate(draft: EntryDraft): void {
    const { grant, turnId } = this.#scope;
    this.#deps.store.spool.keep({ grant, turnId, entries: [draft] }).catch(reportDefect);
  }
}
