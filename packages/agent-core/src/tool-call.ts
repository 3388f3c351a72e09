import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { JsonValue, ToolBody, ToolStatus } from "@turnkeeper/state-store";
import type { Delegate } from "./delegation/turn-delegation.ts";
import { insideTurn } from "./reentry.ts";
import { parseArguments } from "./tool-input.ts";
import type { ParsedArguments, ToolSet } from "./tool-input.ts";
import type { AnyTool, ToolContext, ToolDefinition } from "./tool.ts";
import type { TurnScope } from "./turn-machinery.ts";

/** What a person or a policy is asked before a call that needs approval. */
export interface ApprovalRequest {
  readonly sessionId: string;
  readonly turnId: string;
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  /** Aborts when the turn is stopped: the question is moot then. */
  readonly signal: AbortSignal;
}

/** `allow` and `deny` for every call, or a question for each. */
export type Approval = "allow" | "deny" | ((request: ApprovalRequest) => Promise<"allow" | "deny">);

/** A call with its arguments checked, as it is stored before anything runs. */
export interface PreparedCall {
  readonly callId: string;
  /** Always a legal name, whatever the model sent: a stored name that a provider refuses would wedge the session. */
  readonly name: string;
  readonly tool: AnyTool | undefined;
  readonly parsed: ParsedArguments;
}

export interface ToolRunDeps {
  readonly host: Host;
  readonly scope: TurnScope;
  readonly workspace: string;
  readonly approval: Approval;
  /** Asks when every question before it was answered. */
  inTurn<Answer>(ask: () => Promise<Answer>): Promise<Answer>;
  onApprovalRequested(callId: string): void;
  onStarted(call: PreparedCall): void;
  /** Hands tasks of this call to children. */
  readonly delegate: Delegate | undefined;
  /** Told once the call has a result of its tool's own, which says all of what it was told. */
  onAnswered(): void;
  /** Told what a call that was left behind came to in the end: it has its result already, and gets no second one. */
  onLate(call: PreparedCall, late: Settled): void;
}

const defaultBoundMs = 600_000;
/** How long a person may take over an approval. */
const approvalBoundMs = 3_600_000;
/** How long a stopped tool may take to end before the turn goes on without it. */
const softGraceMs = 5000;
const hardGraceMs = 2000;

/** Finds the tool and checks the arguments; nothing runs and nothing is refused yet. */
export async function prepareCall(
  tools: ToolSet,
  call: { readonly callId: string; readonly name: string; readonly inputText: string },
): Promise<PreparedCall> {
  const tool = tools.get(call.name);
  if (tool) return { callId: call.callId, name: tool.name, tool, parsed: await parseArguments(tool, call.inputText) };
  const name = call.name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "unnamed";
  const known = [...tools.keys()].join(", ");
  const message = `There is no tool named ${JSON.stringify(call.name.slice(0, 64))}. ${known ? `The tools are: ${known}.` : "There are no tools here."}`;
  return { callId: call.callId, name, tool: undefined, parsed: { kind: "invalid", stored: {}, message } };
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message || "The tool failed and said nothing more.";
}

/** What a call came to. */
export type Settled = Pick<ToolBody, "status" | "output" | "receipt">;

const leftBehind: Settled = Object.freeze<Settled>({
  status: "interrupted",
  output: "The turn was stopped. This call did not end in time and was left behind; it may have had its effect.",
});

function failure(status: ToolStatus, error: unknown): Settled {
  const receipt = CodedError.is(error) ? error.context["receipt"] : undefined;
  // An error's context survives JSON: that is the rule for it, and here it is made sure of.
  const told = receipt === undefined ? {} : { receipt: JSON.parse(JSON.stringify(receipt)) as JsonValue };
  return { status, output: messageOf(error), ...told };
}

/** Settles with the tool, or after a grace once the turn was stopped: a tool that ignores the stop is left behind. */
async function settledOrDetached(deps: ToolRunDeps, running: Promise<Settled>): Promise<Settled> {
  const { signal, hardSignal } = deps.scope.interrupt;
  let cancelTimer = (): void => {};
  let removeListeners = (): void => {};
  const detached = new Promise<Settled>((resolve) => {
    const detach = (): void => resolve(leftBehind);
    const arm = (): void => {
      cancelTimer();
      cancelTimer = deps.host.timers.after(hardSignal.aborted ? hardGraceMs : softGraceMs, detach);
    };
    if (signal.aborted) arm();
    signal.addEventListener("abort", arm, { once: true });
    hardSignal.addEventListener("abort", arm, { once: true });
    removeListeners = () => {
      signal.removeEventListener("abort", arm);
      hardSignal.removeEventListener("abort", arm);
    };
  });
  try {
    return await Promise.race([running, detached]);
  } finally {
    cancelTimer();
    removeListeners();
  }
}

/** Rejects with the stop as soon as the turn is stopped; the answer to a question that is moot is nobody's business. */
async function unlessStopped<Answer>(signal: AbortSignal, question: Promise<Answer>): Promise<Answer> {
  let removeListener = (): void => {};
  const stopped = new Promise<never>((_resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    removeListener = () => signal.removeEventListener("abort", stop);
  });
  try {
    return await Promise.race([stopped, question]);
  } finally {
    removeListener();
  }
}

async function approved(deps: ToolRunDeps, call: PreparedCall, tool: ToolDefinition, value: unknown): Promise<boolean> {
  const needs = typeof tool.needsApproval === "function" ? tool.needsApproval(value) : (tool.needsApproval ?? false);
  if (!needs || deps.approval === "allow") return true;
  if (deps.approval === "deny") return false;
  const { approval } = deps;
  const { sessionId, turnId, clock, interrupt } = deps.scope;
  const { signal } = interrupt;
  const question = deps.inTurn(async () => {
    signal.throwIfAborted();
    deps.onApprovalRequested(call.callId);
    using _wait = clock.declareWait({ kind: "approval", name: call.name, boundMs: approvalBoundMs });
    const { callId, name } = call;
    return await unlessStopped(
      signal,
      approval({ sessionId, turnId, callId, name, input: call.parsed.stored, signal }),
    );
  });
  const answer = await unlessStopped(signal, question);
  // Whoever answers "deny" because the signal aborted has denied nothing: the call was not started.
  signal.throwIfAborted();
  clock.progress("approval", call.name);
  return answer === "allow";
}

function contextOf(deps: ToolRunDeps, call: PreparedCall): ToolContext {
  const { scope } = deps;
  const { sessionId, turnId, clock, interrupt } = scope;
  return {
    sessionId,
    turnId,
    callId: call.callId,
    workspace: deps.workspace,
    signal: interrupt.signal,
    hardSignal: interrupt.hardSignal,
    progress: (detail) => clock.progress("tool", detail ?? call.name),
    ...(deps.delegate ? { delegate: deps.delegate } : {}),
    get processMarker() {
      return scope.markProcesses();
    },
  };
}

async function execute(deps: ToolRunDeps, call: PreparedCall, tool: ToolDefinition, value: unknown): Promise<Settled> {
  const { sessionId, clock, interrupt } = deps.scope;
  const boundMs = typeof tool.boundMs === "function" ? tool.boundMs(value) : (tool.boundMs ?? defaultBoundMs);
  clock.progress("tool", call.name);
  using _wait = clock.declareWait({ kind: "tool", name: call.name, boundMs });
  let hasAnswered = false;
  const run = async (): Promise<Settled> => {
    try {
      const output = await insideTurn(sessionId, () => tool.execute(value, contextOf(deps, call)));
      hasAnswered = true;
      return interrupt.signal.aborted
        ? { status: "interrupted", output: output ?? null }
        : { status: "ok", output: output ?? null };
    } catch (error) {
      return failure(interrupt.signal.aborted ? "interrupted" : "error", error);
    }
  };
  const running = run();
  const settled = await settledOrDetached(deps, running);
  if (settled !== leftBehind && hasAnswered) deps.onAnswered();
  if (settled === leftBehind) void running.then((late) => deps.onLate(call, late));
  clock.progress("tool", call.name);
  return settled;
}

/** A result for a call that never started. */
export function notStarted(call: Pick<PreparedCall, "callId" | "name">, why = "the turn was stopped"): ToolBody {
  const { callId, name } = call;
  return { role: "tool", callId, name, status: "interrupted", output: `Not run: ${why} before this call started.` };
}

/**
 * Runs one prepared call to its one result. Nothing the tool does can end the turn: bad arguments, a throw, a refusal
 * and a tool that never ends all become results that the model sees. After a stop was observed nothing starts (INT-2).
 */
export async function runToolCall(deps: ToolRunDeps, call: PreparedCall): Promise<ToolBody> {
  const settle = (settled: Settled): ToolBody => ({ role: "tool", callId: call.callId, name: call.name, ...settled });
  const { tool, parsed } = call;
  if (parsed.kind === "invalid" || !tool) {
    deps.onStarted(call);
    return settle({ status: "error", output: parsed.kind === "invalid" ? parsed.message : "There is no such tool." });
  }
  try {
    // A list of tools forgets each tool's input type; the value was checked by that same tool's schema.
    const typed = tool as ToolDefinition;
    if (!(await approved(deps, call, typed, parsed.value))) {
      deps.onStarted(call);
      return settle({
        status: "denied",
        output:
          "Denied: this call needs approval and was not allowed. Do not repeat it; go on without it or say what you need.",
      });
    }
    await deps.scope.beforeSideEffect();
    // Another call's end may have stopped the turn in the moment between.
    deps.scope.interrupt.signal.throwIfAborted();
    deps.onStarted(call);
    return settle(await execute(deps, call, typed, parsed.value));
  } catch (error) {
    if (deps.scope.interrupt.signal.aborted || CodedError.is(error, "LEASE_LOST")) return notStarted(call);
    return settle({ status: "error", output: messageOf(error) });
  }
}
