import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { AskedCall, JsonValue, ToolBody, ToolStatus } from "@turnkeeper/state-store";
import { isCallersTool } from "./call-settings.ts";
import type { Delegate } from "./delegation/turn-delegation.ts";
import { insideTurn } from "./reentry.ts";
import { parseArguments } from "./tool-input.ts";
import type { ParsedArguments, ToolSet } from "./tool-input.ts";
import type { AnyTool, ToolContext, ToolDefinition } from "./tool.ts";
import type { TurnScope } from "./turn-machinery.ts";

/**
 * What becomes of the calls that ask for approval: they run, they are denied, or the turn waits for an answer to each.
 */
export type Approval = "allow" | "deny" | "ask";

/** What a policy is asked of each call. */
export interface PolicyCall {
  readonly name: string;
  readonly input: unknown;
  /** Whether the tool asks for approval by itself. */
  readonly needsApproval: boolean;
}

/** Decides on a call before anything of it runs. What it denies nobody can allow. */
export type ApprovalPolicy = (call: PolicyCall) => Approval;

/** What a call comes to before it starts. */
export type CallVerdict =
  | { readonly kind: Approval }
  /** Whoever was asked about it has run it. */
  | { readonly kind: "run-elsewhere"; readonly output: JsonValue }
  /** The policy, or the tool's own word on it, threw. */
  | { readonly kind: "unclear"; readonly error: unknown };

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
  onStarted(call: PreparedCall): void;
  /** Hands tasks of this call to children. */
  readonly delegate: Delegate | undefined;
  /** Told once the call has a result of its tool's own, which says all of what it was told. */
  onAnswered(): void;
  /** Told what a call that was left behind came to in the end: it has its result already, and gets no second one. */
  onLate(call: PreparedCall, late: Settled): void;
}

const defaultBoundMs = 600_000;
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

/** What the model is told of an error. */
function failureText(error: unknown): string {
  return messageOf(error) || "The tool failed and said nothing more.";
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
  return { status, output: failureText(error), ...told };
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

export interface VerdictDeps {
  readonly policy: ApprovalPolicy | undefined;
  readonly approval: Approval;
  /** The calls that this turn was suspended over, by id, with what was answered. */
  readonly asked: ReadonlyMap<string, AskedCall>;
}

const isDecidedByTool: ApprovalPolicy = ({ needsApproval }) => (needsApproval ? "ask" : "allow");

/** What becomes of a call, by its tool, the policy, and what somebody has answered. Nothing runs yet. */
export function verdictOf({ policy, approval, asked }: VerdictDeps, call: PreparedCall): CallVerdict {
  const { tool, parsed } = call;
  const { answer: { decision, output } = {}, child } = asked.get(call.callId) ?? {};
  // Whoever goes on with the turn may not know a tool that its caller brought.
  if (decision === "allow" && output !== undefined) return { kind: "run-elsewhere", output };
  // It was allowed, has run, and runs again for the end of its subagent.
  if (child) return { kind: "allow" };
  // It ends in an error of ours, and has nothing to ask for.
  if (!tool || parsed.kind === "invalid") return { kind: "allow" };
  // Nothing of it runs here, so there is nothing to allow: its result is asked for.
  if (isCallersTool(tool)) return { kind: decision ?? "ask" };
  // A list of tools forgets each tool's input type; the value was checked by that same tool's schema.
  const { name, needsApproval: own = false } = tool as ToolDefinition;
  try {
    const needsApproval = typeof own === "function" ? own(parsed.value) : own;
    const wanted = (policy ?? isDecidedByTool)({ name, input: parsed.value, needsApproval });
    return { kind: wanted === "ask" ? (decision ?? approval) : wanted };
  } catch (error) {
    return { kind: "unclear", error };
  }
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
export async function runToolCall(deps: ToolRunDeps, call: PreparedCall, verdict: CallVerdict): Promise<ToolBody> {
  const settle = (settled: Settled): ToolBody => ({ role: "tool", callId: call.callId, name: call.name, ...settled });
  const { tool, parsed } = call;
  if (verdict.kind === "run-elsewhere") {
    deps.onStarted(call);
    return settle({ status: "ok", output: verdict.output });
  }
  if (parsed.kind === "invalid" || !tool) {
    deps.onStarted(call);
    return settle({ status: "error", output: parsed.kind === "invalid" ? parsed.message : "There is no such tool." });
  }
  try {
    // A list of tools forgets each tool's input type; the value was checked by that same tool's schema.
    const typed = tool as ToolDefinition;
    if (verdict.kind === "unclear") throw verdict.error;
    if (verdict.kind !== "allow") {
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
    return settle({ status: "error", output: failureText(error) });
  }
}
