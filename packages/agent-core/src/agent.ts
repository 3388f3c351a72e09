import { CodedError, systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import { sharedScheduler } from "@turnkeeper/periodic-scheduler";
import type { SharedScheduler } from "@turnkeeper/periodic-scheduler";
import type { AskedCall, RequestStopResult, RunningTurn, StateStore } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import type { ProgressClock } from "@turnkeeper/turn-liveness";
import { BackgroundReviews } from "./background/background-reviews.ts";
import type { Review } from "./background/background-reviews.ts";
import { sessionTitles } from "./background/session-titles.ts";
import type { ApprovalAnswer, ApprovalOutcome } from "./answer-approval.ts";
import { compactionByHand } from "./compaction/compaction-by-hand.ts";
import { withCallersTools } from "./call-settings.ts";
import type { CallSettings } from "./call-settings.ts";
import { readContextUsage } from "./context-usage.ts";
import type { ContextUsage } from "./context-usage.ts";
import { Conversations } from "./conversation.ts";
import type { Conversation } from "./conversation.ts";
import { lookEveryMsOf } from "./delegation/child-pulse.ts";
import { TurnDelegation } from "./delegation/turn-delegation.ts";
import type { DelegationDeps } from "./delegation/turn-delegation.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { WaitingRun } from "./dispatcher.ts";
import { resolveAgentOptions } from "./options.ts";
import type { AgentOptions, ResolvedAgentOptions } from "./options.ts";
import type { TurnEvent } from "./events.ts";
import type { ModelCallReport } from "./model-call-report.ts";
import { Observers } from "./observers.ts";
import type { EndProcesses } from "./process-marker.ts";
import type { CloseOptions, TurnBody } from "./session-runner.ts";
import type { ApprovalPolicy } from "./tool-call.ts";
import { toolSet } from "./tool-input.ts";
import type { ToolSet } from "./tool-input.ts";
import type { AnyTool } from "./tool.ts";
import { checkedSessionId } from "./session-id.ts";
import type { RunOptions, StopOptions, Turn } from "./turn-call.ts";
import { TurnLoop } from "./turn-loop.ts";
import { turnSoFar } from "./turn-so-far.ts";

/** What a turn runs on; everything but the store has a default. */
export interface MachineryDeps {
  readonly store: StateStore;
  /** Default: the system's clock, timers and randomness. */
  readonly host?: Host;
  /** Default: the process's shared scheduler. */
  readonly scheduler?: SharedScheduler;
  /**
   * How other processes tell whether this one lives. Default: one without a socket; then they rely on pid and start
   * time. Pass one with a socket folder beside the store's file.
   */
  readonly presence?: ProcessPresence;
  /** Ends the processes that a dead turn left on this host; the tools package has it. */
  readonly endProcesses?: EndProcesses;
}

export interface AgentDeps extends MachineryDeps {
  readonly model: ResolvedModel;
  readonly tools?: readonly AnyTool[];
  /** Names new sessions by what they are about, in the background. Absent: their first messages name them. */
  readonly titleModel?: ResolvedModel;
  /** Looks over each conversation whose turn was answered, in the background. */
  readonly review?: Review;
  /** Which calls run, are denied, or ask for approval. Default: what `needsApproval` of their tools says. */
  readonly approvalPolicy?: ApprovalPolicy | undefined;
}

export interface Agent extends AsyncDisposable {
  /** The model that answers, `PROVIDER/MODEL`. */
  readonly modelId: string;
  /**
   * Runs one input on a session: accepted means stored, and a stored input has exactly one durable end. Answers at once
   * with the call; its events and its result follow. Throws `SESSION_ID_INVALID`, `INPUT_EMPTY`, `INPUT_TOO_LARGE`,
   * `INPUT_ID_INVALID`, `OPTION_INVALID`, `TOOL_DUPLICATE`, `TURN_REENTRANT` or `AGENT_CLOSED`, and nothing is stored then.
   */
  run(sessionId: string, input: string, options?: RunOptions): Turn;
  /**
   * Summarises the session now, as a turn of its own without an input: the same events, the same stop. Whatever failed
   * before, it is tried; a busy session is answered `busy`. `inputId` of the answer names nothing that is stored.
   */
  compact(sessionId: string): Turn;
  /** How full the session's context is, and what happens next about it; for people. */
  context(sessionId: string): Promise<ContextUsage>;
  /** Asks the session's running turn to stop, in whatever process it runs. Answers at once. */
  stop(sessionId: string, options?: StopOptions): Promise<RequestStopResult>;
  /**
   * Begins what waits for nobody in any session of the store: queued inputs, those of processes that died before their
   * turn began, and suspended turns that are answered while nobody lives who asked, where this agent has the tools that
   * they asked about. The sessions first that have waited longest. Answers how many it began; to be called again every
   * few seconds, and `onRoom`. For a process that serves a store. Rejects with `OPTION_INVALID`, `AGENT_CLOSED`.
   */
  runWaiting(options?: WaitingRun): Promise<number>;
  /**
   * Tells `listener` everything that happens in the turns that run an input in this agent, once for each turn, whoever
   * called and whether anybody did, until disposed. It is called in the middle of the turn: it must be quick.
   */
  observe(listener: (event: TurnEvent) => void): Disposable;
  /** Tells `listener` each request that a turn's loop makes to a model, once it has ended, until disposed. */
  observeModelCalls(listener: (call: ModelCallReport) => void): Disposable;
  /**
   * Allows or denies a call that a suspended turn asks about, whoever asked; the first answer counts. Once all are
   * answered the turn goes on: in the process that asked, where it lives, else here, if this agent has its tools.
   */
  answer(sessionId: string, callId: string, answer: ApprovalAnswer): Promise<ApprovalOutcome>;
  /** Resolves once every turn and every queued input that this agent must run has ended, and what looks them over. */
  idle(): Promise<void>;
  /**
   * Stops what runs as `shutdown`, or with `drain` lets it end, leaves what waits to others, and lets go of everything.
   * Safe to repeat: a further call without `drain` stops what one with it let run.
   */
  close(options?: CloseOptions): Promise<void>;
}

interface LoopParts {
  readonly store: StateStore;
  readonly host: Host;
  readonly scheduler: SharedScheduler;
  readonly model: ResolvedModel;
  readonly tools: ToolSet;
  readonly policy: ApprovalPolicy | undefined;
  readonly onModelCall: (call: ModelCallReport) => void;
}

function askedIn(turn: RunningTurn | undefined): ReadonlyMap<string, AskedCall> {
  return new Map(turn?.approvals?.map((asked) => [asked.callId, asked]));
}

/** A turn of our loop that runs here. */
interface RunningLoop {
  readonly conversation: Conversation;
  readonly clock: ProgressClock;
  readonly isChild: boolean;
  readonly delegation: TurnDelegation;
}

/** What a child is told before its task. */
const childSystem =
  "You are a subagent: you do one task for another agent, whose conversation you do not see. Do it with what you are given, and end with what you found or did: your last message is all that it is told.";

/** The settings of a turn's loop: the caller's join the agent's; a child's are the agent's, but for what delegation says. */
function loopOptions(
  options: ResolvedAgentOptions,
  isChild: boolean,
  { instructions, conversation }: CallSettings,
): ResolvedAgentOptions {
  const { system, delegation } = options;
  if (!isChild) {
    const asked = instructions ? { system: [system, instructions].filter(Boolean).join("\n\n") } : {};
    return { ...options, ...asked, ...(conversation ? { conversationOf: () => conversation } : {}) };
  }
  const { maxIterations, budget } = delegation;
  // What its parent's conversation is, it is not.
  const conversationOf = undefined;
  return {
    ...options,
    maxIterations,
    budget,
    conversationOf,
    system: [system, childSystem].filter(Boolean).join("\n\n"),
  };
}

/** Our own loop as the body of a turn, with the conversations it remembers between turns. */
function loopBody(
  parts: LoopParts,
  options: ResolvedAgentOptions,
  reviews: BackgroundReviews,
  runChild: DelegationDeps["runChild"],
): TurnBody {
  const conversations = new Conversations(parts.store, parts.model.id);
  const running = new Map<string, RunningLoop>();
  const delegationDeps = { ...parts, runChild, clockOf: (sessionId: string) => running.get(sessionId)?.clock };
  const delegationSettings = { ...options.delegation, lookEveryMs: lookEveryMsOf(options.liveness?.timeoutMs) };
  const silenceMs = parts.model.silenceMs ?? options.liveness?.timeoutMs ?? 600_000;
  return {
    resumes: true,
    // What was brought a result of needs no tool here, and what its caller runs is declared with the input.
    canResume: ({ approvals = [] }) =>
      approvals.every(
        ({ name, answer, resultUntilMs }) =>
          answer?.output !== undefined || resultUntilMs !== undefined || parts.tools.has(name),
      ),
    run: async (scope, start) => {
      reviews.cancel(scope.sessionId);
      const { conversation, soFar } = await conversations.upTo(start.input, start.revision);
      const { approval, emit, isChild, settings } = start;
      const tools = withCallersTools(parts.tools, settings.tools);
      const delegation = new TurnDelegation(delegationDeps, delegationSettings, scope, start);
      running.set(scope.sessionId, { conversation, clock: scope.clock, isChild, delegation });
      const loop = new TurnLoop(
        { ...parts, tools, approval, delegation, asked: askedIn(start.resumed), emit },
        { ...loopOptions(options, isChild, settings), silenceMs, model: settings.model ?? {} },
        scope,
        conversation,
        turnSoFar(soFar, tools, options.guardrails),
      );
      const end = await loop.run();
      const { resultWaitMs } = settings;
      return end.outcome === "suspended" && resultWaitMs !== undefined ? { ...end, resultWaitMs } : end;
    },
    ended: (sessionId, conducted) => {
      const { conversation, isChild, delegation } = running.get(sessionId) ?? {};
      running.delete(sessionId);
      delegation?.letGo();
      // A child has done its work: nobody waits for its next turn, and a thousand conversations are much to keep.
      if (isChild || !conducted.ending) return;
      const { ending, revision } = conducted;
      // Only an answered turn wrote exactly what the loop holds; after any other the store may have closed calls.
      if (!conversation || revision === undefined || ending.outcome !== "answered") return;
      conversations.remember(sessionId, revision, conversation);
      reviews.spawn(sessionId, conversation.bodies);
    },
  };
}

type Liveness = ResolvedAgentOptions["liveness"];

/** A model that may be silent for less than the turn's own bound: the smaller one counts. A larger one is a declared wait. */
function boundedBySilence(liveness: Liveness, silenceMs: number | undefined): Liveness {
  if (liveness === undefined || silenceMs === undefined || silenceMs >= liveness.timeoutMs) return liveness;
  return { timeoutMs: silenceMs, pollMs: Math.min(liveness.pollMs, silenceMs / 4) };
}

/** Fills in what the caller left to us; `closeOwn` closes exactly what was opened here. */
export async function openMachinery(
  deps: MachineryDeps,
): Promise<Required<Omit<MachineryDeps, "endProcesses">> & { readonly closeOwn: () => Promise<void> }> {
  const host = deps.host ?? systemHost;
  const presence = deps.presence ?? (await openProcessPresence({ host }));
  const closeOwn = async (): Promise<void> => {
    if (deps.presence === undefined) await presence.close();
  };
  return { store: deps.store, host, presence, scheduler: deps.scheduler ?? sharedScheduler(), closeOwn };
}

function checkedCount(sessionCount: number): number {
  if (Number.isSafeInteger(sessionCount) && sessionCount > 0) return sessionCount;
  const message = `Option sessionCount: expected a whole number above 0, got ${String(sessionCount)}.`;
  throw new CodedError("OPTION_INVALID", message, { context: { option: "sessionCount" } });
}

/**
 * Makes an agent on a store: everything it does goes through the inbox, runs under a lease, and is appended step by
 * step under the fencing token. Many agents, in many processes, may share a store. Rejects with `OPTION_INVALID` or
 * `TOOL_DUPLICATE`.
 */
export async function createAgent(deps: AgentDeps, options: AgentOptions = {}): Promise<Agent> {
  const resolved = resolveAgentOptions(options, process.cwd(), deps.model.price);
  const tools = toolSet(deps.tools ?? []);
  const { closeOwn, ...machinery } = await openMachinery(deps);
  const { store, host, scheduler } = machinery;
  const { approvalPolicy: policy } = deps;
  const modelCalls = new Observers<ModelCallReport>();
  const onModelCall = (call: ModelCallReport): void => modelCalls.tell(call);
  const parts = { store, host, scheduler, model: deps.model, tools, policy, onModelCall };
  const reviews = new BackgroundReviews([
    ...(deps.titleModel ? [sessionTitles({ store, host, model: deps.titleModel })] : []),
    ...(deps.review ? [deps.review] : []),
  ]);
  const body = loopBody(parts, resolved, reviews, (task) => dispatcher.runChild(task));
  const liveness = boundedBySilence(resolved.liveness, deps.model.silenceMs);
  const dispatcher: Dispatcher = new Dispatcher(
    { ...machinery, body, endProcesses: deps.endProcesses },
    { ...resolved, liveness },
  );
  const close = async (closeOptions?: CloseOptions): Promise<void> => {
    await dispatcher.close(closeOptions);
    await reviews.close();
    await closeOwn();
  };
  return {
    modelId: deps.model.id,
    run: (sessionId, input, runOptions) => {
      // Refused before anything is stored.
      withCallersTools(tools, runOptions?.settings?.tools);
      return dispatcher.run(sessionId, input, runOptions);
    },
    compact: (sessionId) => dispatcher.runWithoutInput(sessionId, compactionByHand(parts, resolved)),
    answer: (sessionId, callId, answer) => dispatcher.answer(sessionId, callId, answer),
    context: (sessionId) => readContextUsage(parts, resolved, checkedSessionId(sessionId)),
    stop: (sessionId, stopOptions) => dispatcher.stop(sessionId, stopOptions),
    runWaiting: async ({ sessionCount = 100, onRoom } = {}) =>
      dispatcher.runWaiting(checkedCount(sessionCount), onRoom),
    observe: (listener) => dispatcher.observe(listener),
    observeModelCalls: (listener) => modelCalls.observe(listener),
    idle: async () => {
      await dispatcher.idle();
      await reviews.idle();
    },
    close,
    [Symbol.asyncDispose]: () => close(),
  };
}
