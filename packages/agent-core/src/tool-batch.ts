import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { leftChild } from "@turnkeeper/state-store";
import type { ChildWait, EntryDraft, ToolBody } from "@turnkeeper/state-store";
import type { RestingChild, TurnDelegation } from "./delegation/turn-delegation.ts";
import type { TurnEventBody } from "./events.ts";
import { stubOf } from "./guardrails.ts";
import type { GuardedCall, Guardrails, GuardJudgement } from "./guardrails.ts";
import { notStarted, runToolCall, verdictOf } from "./tool-call.ts";
import type { CallVerdict, PreparedCall, ToolRunDeps, VerdictDeps } from "./tool-call.ts";
import type { TurnScope } from "./turn-machinery.ts";

export interface ToolBatchDeps {
  readonly host: Host;
  readonly scope: TurnScope;
  readonly workspace: string;
  readonly verdicts: VerdictDeps;
  readonly guardrails: Guardrails;
  readonly delegation?: TurnDelegation | undefined;
  readonly emit: (event: TurnEventBody) => void;
  /** Told each result once it is stored, in the order of the calls. */
  onResult(call: PreparedCall, body: ToolBody): void;
  /** Keeps what a call that was left behind came to: late, so shown to people and never to the model. */
  keepLate(draft: EntryDraft): void;
}

interface Finished {
  readonly body: ToolBody;
  /** Absent where the call never started. */
  readonly durationMs: number | undefined;
  /** The notices of children that the result says all of. */
  readonly notices: readonly string[];
}

/** A call as the guardrails see it. */
export function guarded(call: PreparedCall): GuardedCall {
  return { callId: call.callId, name: call.name, input: call.parsed.stored, traits: call.tool?.traits };
}

/** The result as it is stored, with what the guardrails make of it. */
function judged(body: ToolBody, { note, repeats }: GuardJudgement): ToolBody {
  return {
    ...body,
    ...(repeats === undefined ? {} : { output: stubOf(repeats, body.output), repeats }),
    ...(note === undefined ? {} : { note }),
  };
}

/**
 * The calls of one step: at most `concurrency` at once, an exclusive one alone, and a result for each, stored in the
 * order the model gave the calls in, whatever order they ended in. After a stop, a judgement of the guardrails or a failure of
 * the store nothing starts (INT-2), and what did not start has its result too (PAIR-1).
 *
 * A call that asks for approval does not run, and neither does what must not overtake it: an exclusive call behind it, and
 * whatever stands behind an exclusive one. All of these stay open, for the turn that is suspended over them (rule 7.19).
 * So does a call that may run again and waits for nothing but children that wait for approval: it counts as one that does
 * not run, and once nothing else does it is given up. A call that may not run again keeps the turn, which says what for.
 */
export class ToolBatch {
  readonly #deps: ToolBatchDeps;
  readonly #calls: readonly PreparedCall[];
  readonly #concurrency: number;
  readonly #verdicts: readonly CallVerdict[];
  readonly #finished: (Finished | undefined)[] = [];
  /** Calls that stay open, by their places. */
  readonly #heldBack = new Set<number>();
  readonly #running = new Set<Promise<void>>();
  /** Calls that run and wait for nothing but children that wait for approval, and may be given up. */
  readonly #resting = new Map<number, RestingChild>();
  /** Those that may not. */
  readonly #kept = new Set<number>();
  #toldOf = "";
  /** The children of calls that were given up over them. */
  readonly #awaited = new Map<number, string>();
  #tellChange = (): void => {};
  readonly #stored = new Set<number>();
  #storing: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | undefined;
  #halt: GuardJudgement["halt"];

  constructor(deps: ToolBatchDeps, calls: readonly PreparedCall[], concurrency: number) {
    this.#deps = deps;
    this.#calls = calls;
    this.#concurrency = concurrency;
    this.#verdicts = calls.map((call) => verdictOf(deps.verdicts, call));
  }

  /** Why the turn must end, where the calls go round in circles. */
  get halt(): GuardJudgement["halt"] {
    return this.#halt;
  }

  /** The calls that ask for approval and have no result. */
  get asking(): readonly PreparedCall[] {
    return this.#calls.filter((_, index) => this.#heldBack.has(index) && this.#verdicts[index]?.kind === "ask");
  }

  /** The calls that were given up over children that wait for approval. */
  get waits(): readonly ChildWait[] {
    return this.#calls.flatMap(({ callId }, index) => {
      const childSessionId = this.#heldBack.has(index) ? this.#awaited.get(index) : undefined;
      return childSessionId === undefined ? [] : [{ callId, childSessionId }];
    });
  }

  /** What the calls without a result come to where the turn does not go on: those that ask or wait, and those behind them. */
  get ifStopped(): readonly ToolBody[] {
    return this.#calls.flatMap((call, index) => (this.#heldBack.has(index) ? [this.#notRun(index, call)] : []));
  }

  /** Resolves when every call that is not held back has its stored result; rejects, once nothing of it runs any more, with what a write threw. */
  async run(): Promise<void> {
    using _phase = this.#isOver ? undefined : this.#deps.scope.interrupt.enterPhase("tools");
    this.#holdBack();
    for (const [index, call] of this.#calls.entries()) {
      if (this.#heldBack.has(index)) continue;
      const isExclusive = call.tool?.concurrency === "exclusive";
      if (!(await this.#hasRoom(isExclusive))) {
        this.#holdBackFrom(index);
        break;
      }
      const work = this.#bringToResult(index, call).finally(() => this.#running.delete(work));
      this.#running.add(work);
      if (isExclusive) await work;
    }
    while (this.#awakeCount > 0) await this.#nextChange();
    this.#giveUpResting();
    await Promise.all(this.#running);
    await this.#storing;
    // Nobody is asked or waited for any more: what was to wait for an answer did not start.
    const left = this.#isOver ? Array.from(this.#heldBack) : [];
    for (const index of left) {
      const call = this.#calls[index];
      this.#heldBack.delete(index);
      if (call) await this.#bringToResult(index, call);
    }
    if (this.#failure) throw this.#failure.error;
  }

  /** How many calls do not merely wait for somebody's approval. A stop wakes all: each ends, or is left, by itself. */
  get #awakeCount(): number {
    return this.#running.size - (this.#deps.scope.interrupt.signal.aborted ? 0 : this.#resting.size);
  }

  /** A call ended, or began or ceased to rest. */
  async #nextChange(): Promise<void> {
    this.#tellWait();
    const change = new Promise<void>((resolve) => {
      this.#tellChange = resolve;
    });
    await Promise.race([...this.#running, change]);
  }

  /** Resolves once the next call may start; false: an exclusive one has to wait behind those that rest. */
  async #hasRoom(isExclusive: boolean): Promise<boolean> {
    while (this.#awakeCount > (isExclusive ? 0 : this.#concurrency - 1)) await this.#nextChange();
    return !isExclusive || this.#running.size === 0;
  }

  #rests(index: number, call: PreparedCall, child: RestingChild | undefined): void {
    if (!call.tool?.mayRunAgain) this.#keeps(index, child !== undefined);
    else if (child) this.#resting.set(index, child);
    else this.#resting.delete(index);
    this.#tellChange();
  }

  #keeps(index: number, isKept: boolean): void {
    if (isKept) this.#kept.add(index);
    else this.#kept.delete(index);
  }

  /** Nothing moves until somebody answers, and the turn keeps its session: said once, or it looks like work. */
  #tellWait(): void {
    const { scope, emit } = this.#deps;
    const waiting = new Set([...this.#resting.keys(), ...this.#kept]);
    if (this.#kept.size === 0 || waiting.size < this.#running.size || scope.interrupt.signal.aborted) return;
    const awaits = this.#calls.flatMap(({ callId }, index) => (waiting.has(index) ? [callId] : []));
    const isTold = this.#toldOf === awaits.join(" ");
    this.#toldOf = awaits.join(" ");
    if (!isTold) emit({ type: "turn.waiting", awaits, keepsSession: true, elapsedMs: 0 });
  }

  /** In one step with the last look: from here on their children's ends are told by the store alone. */
  #giveUpResting(): void {
    for (const [index, child] of this.#resting) {
      this.#awaited.set(index, child.sessionId);
      this.#heldBack.add(index);
      child.giveUp();
    }
    // What has ended behind them waits for their results no more.
    this.#storing = this.#storing.then(() => this.#store());
  }

  #holdBackFrom(first: number): void {
    for (let index = first; index < this.#calls.length; index++) this.#heldBack.add(index);
  }

  #notRun(index: number, call: PreparedCall): ToolBody {
    const childSessionId = this.#awaited.get(index);
    if (childSessionId !== undefined) return leftChild(call, childSessionId);
    return notStarted(call, this.#halt ? "the turn was ended for repeating itself" : undefined);
  }

  #holdBack(): void {
    let isBarred = false;
    for (const [index, call] of this.#calls.entries()) {
      const isExclusive = call.tool?.concurrency === "exclusive";
      isBarred ||= isExclusive && this.#heldBack.size > 0;
      const asks = this.#verdicts[index]?.kind === "ask";
      if (isBarred || asks) this.#heldBack.add(index);
      isBarred ||= isExclusive && asks;
    }
  }

  get #isOver(): boolean {
    const { interrupt, storeFailure } = this.#deps.scope;
    const mayNotGoOn = this.#halt !== undefined || storeFailure !== undefined || this.#failure !== undefined;
    return mayNotGoOn || interrupt.signal.aborted;
  }

  /** Never rejects. */
  async #bringToResult(index: number, call: PreparedCall): Promise<void> {
    const finished = this.#isOver
      ? { body: this.#notRun(index, call), durationMs: undefined, notices: [] }
      : await this.#run(index, call);
    // It was given up, and has its result when it is run again.
    if (this.#heldBack.has(index)) return;
    this.#finished[index] = finished;
    this.#storing = this.#storing.then(() => this.#store());
    await this.#storing;
  }

  async #run(index: number, call: PreparedCall): Promise<Finished> {
    const { host, scope, workspace, guardrails, emit, verdicts } = this.#deps;
    const verdict = this.#verdicts[index] ?? { kind: "deny" };
    const hasStarted = verdicts.asked.get(call.callId)?.child !== undefined;
    let startedAtMs: number | undefined;
    const told: string[] = [];
    let notices: readonly string[] = [];
    const deps: ToolRunDeps = {
      host,
      scope,
      workspace,
      onStarted: ({ callId, name, parsed }) => {
        startedAtMs = host.clock.monotonicMs();
        if (!hasStarted) emit({ type: "tool.started", callId, name, input: parsed.stored });
      },
      delegate: this.#deps.delegation?.ofCall(call.callId, {
        onTold: (inputId) => void told.push(inputId),
        onResting: (child) => this.#rests(index, call, child),
      }),
      // What a call that failed or was left behind had been told waits for a checkpoint.
      onAnswered: () => void (notices = [...told]),
      onLate: ({ callId, name }, late) =>
        this.#deps.keepLate({ key: `${scope.turnId}/${callId}/late`, body: { role: "tool", callId, name, ...late } }),
    };
    const place = guardrails.reserve(guarded(call));
    if (!place) deps.onStarted(call);
    const body = place
      ? await runToolCall(deps, call, verdict)
      : { role: "tool" as const, callId: call.callId, name: call.name, ...guardrails.refusalOf(guarded(call)) };
    const hasRun = startedAtMs !== undefined && body.status !== "denied" && call.parsed.kind === "valid";
    if (!hasRun) place?.rollback();
    const durationMs = startedAtMs === undefined ? undefined : Math.round(host.clock.monotonicMs() - startedAtMs);
    return { body, durationMs, notices };
  }

  /** Stores what stands next in the order of the calls, as one step. Never rejects. */
  async #store(): Promise<void> {
    const ready: { readonly call: PreparedCall; readonly finished: Finished }[] = [];
    const places: number[] = [];
    for (const [index, call] of this.#calls.entries()) {
      if (this.#stored.has(index) || this.#heldBack.has(index)) continue;
      const finished = this.#finished[index];
      if (!finished) break;
      ready.push({ call, finished });
      places.push(index);
    }
    if (ready.length === 0 || this.#failure) return;
    for (const index of places) this.#stored.add(index);
    const { scope, emit, guardrails } = this.#deps;
    const results = ready.map(({ call, finished: { body, durationMs } }) => {
      const judgement = guardrails.observe(guarded(call), body);
      this.#halt ??= judgement.halt;
      return { call, body: judged(body, judgement), durationMs };
    });
    const drafts = results.map(({ body }): EntryDraft => ({ key: `${scope.turnId}/${body.callId}/result`, body }));
    // In one step with the results, so that no notice is told beside its result, or lost with it.
    const notices = ready.flatMap(({ finished }) => finished.notices);
    try {
      await scope.append(
        drafts,
        notices.map((inputId) => ({ inputId, end: "answered" })),
      );
    } catch (error) {
      return this.#fail(error);
    }
    for (const { call, body, durationMs } of results) {
      this.#deps.onResult(call, body);
      if (durationMs === undefined) continue;
      const { callId, name, output, note } = body;
      const ok = body.status === "ok";
      emit({ type: "tool.finished", callId, name, ok, output, durationMs, ...(note === undefined ? {} : { note }) });
    }
  }

  #fail(error: unknown): void {
    this.#failure = { error };
    if (!CodedError.is(error, "LEASE_LOST")) return;
    // The calls that still run learn of it now, not when the next renewal fails.
    void this.#deps.scope.interrupt.interrupt({
      hard: true,
      reason: "lease-lost",
      by: "store",
      message: error.message,
    });
  }
}
