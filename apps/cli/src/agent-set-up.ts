import type { Agent, AgentOptions } from "@turnkeeper/agent-core";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import type { StateStore } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { policyOf } from "./approval.ts";
import { closeAll, openStore, readContext } from "./command-context.ts";
import type { CommandContext, CommonFlags } from "./command-context.ts";
import { complain } from "./command-io.ts";
import type { CommandIo } from "./command-io.ts";
import { defaultConfig } from "./config/config.ts";
import type { Config, DelegationConfig } from "./config/config.ts";
import { exitCode } from "./exit-code.ts";
import { endLeftProcesses } from "./left-processes.ts";
import { messageBytesMax } from "./message.ts";
import { chooseModel, modelNote, openModel, openTitleModel } from "./model-choice.ts";
import type { ModelChoice, ModelDeps } from "./model-choice.ts";
import { workingFolderOf } from "./places.ts";
import { socketFolderOf } from "./store-location.ts";
import { StopLadder } from "./stop-ladder.ts";
import { openToolSet } from "./tool-set.ts";
import type { Audience } from "./tool-set.ts";

/** What a process needs to take part in a store's sessions. */
export interface Seat {
  readonly store: StateStore;
  readonly presence: ProcessPresence;
  close(): Promise<void>;
}

/** Whoever watches a server wants to know how long its writes take. */
async function measured(store: StateStore): Promise<StateStore> {
  const { MeasuredStore } = await import("@turnkeeper/gateway");
  return new MeasuredStore(store, systemHost);
}

/** Opens the store and this process's liveness socket beside it. */
async function takeSeat(context: CommandContext, audience: Audience): Promise<Seat> {
  const { openProcessPresence } = await import("@turnkeeper/turn-lease");
  const opened = await openStore(context);
  const store = audience === "http" ? await measured(opened) : opened;
  const { path, url } = context.store;
  const presence = await openProcessPresence(
    { host: systemHost },
    { socketFolder: socketFolderOf(path), spansHosts: url !== undefined },
  );
  // What other hosts have to say reaches whoever waits here as a wake-up of this host's does.
  const wakeUps = opened.listen?.((sessionId) => void presence.wake(presence.identity, sessionId));
  const close = (): Promise<void> =>
    closeAll([() => store.close(), () => presence.close(), async () => wakeUps?.[Symbol.dispose]()]);
  return { store, presence, close };
}

/** The configuration in an agent's own words: milliseconds, camel case. */
export function agentOptionsOf(
  config: Config,
  workspace: string,
  { audience, isAttended }: { readonly audience: Audience; readonly isAttended: boolean },
): AgentOptions {
  const { turn_lease, turn_liveness, compression, max_iterations, guardrails, delegation } = config.agent;
  // The default depends on the window, which is the agent's to know.
  const isChosen = compression.threshold !== defaultConfig.agent.compression.threshold;
  return {
    system: systemPrompt(workspace, audience),
    workspace,
    maxIterations: max_iterations,
    // Who watches a turn stops it; where nobody does, it stops itself.
    guardrails: { hardStop: guardrails.hard_stop === "auto" ? !isAttended : guardrails.hard_stop === "on" },
    lease: { ttlMs: turn_lease.ttl_s * 1000, renewEveryMs: turn_lease.renew_s * 1000 },
    liveness: turn_liveness.timeout_s > 0 && {
      timeoutMs: turn_liveness.timeout_s * 1000,
      pollMs: turn_liveness.poll_s * 1000,
    },
    waitMs: turn_lease.wait_s * 1000,
    inputBytesMax: messageBytesMax,
    compaction: {
      ...(isChosen ? { threshold: compression.threshold } : {}),
      contextTimeoutMs: compression.context_timeout_s * 1000,
    },
    delegation: delegationOf(delegation),
  };
}

function delegationOf({
  max_children,
  max_depth,
  deadline_s,
  max_iterations,
  budget,
}: DelegationConfig): NonNullable<AgentOptions["delegation"]> {
  const { tokens, cost } = budget ?? {};
  const bounds = { ...(tokens === undefined ? {} : { tokens }), ...(cost === undefined ? {} : { cost }) };
  return {
    maxChildren: max_children,
    maxDepth: max_depth,
    ...(deadline_s === undefined ? {} : { deadlineMs: deadline_s * 1000 }),
    ...(max_iterations === undefined ? {} : { maxIterations: max_iterations }),
    ...(budget === undefined ? {} : { budget: bounds }),
  };
}

/** A model without a price costs nothing that could be counted: the bound is told to be none, and the run goes on. */
function withoutCost(config: Config): Config {
  const { budget, ...delegation } = config.agent.delegation;
  const { cost: _cost, ...others } = budget ?? {};
  return { ...config, agent: { ...config.agent, delegation: { ...delegation, budget: others } } };
}

function systemPrompt(workspace: string, audience: Audience): string {
  return [
    `You are Turnkeeper, an assistant ${audience === "terminal" ? "in a terminal" : "that is reached over HTTP"}. Your workspace is the folder ${workspace}; paths are relative to it.`,
    "Look things up with the tools rather than guess, say what you did in few words, and write Markdown.",
    "A tool call that was denied is not to be repeated: go on without it, or say what you need.",
  ].join("\n");
}

/** An agent with the model it runs on. */
export interface SeatedAgent {
  readonly agent: Agent;
  readonly model: ResolvedModel;
  /** Stops what runs as `shutdown`, leaves what waits to others. */
  close(): Promise<void>;
}

/** For whom an agent works, and what was said for its turns once and for all. */
export interface AgentUse {
  readonly audience?: Audience;
  /** `--yes`. */
  readonly yes?: boolean | undefined;
  /** Told what a rule denies. Default: a line on stderr. */
  readonly note?: (text: string) => void;
  /** Ends the set-up, where it waits for somebody else: `CALL_INTERRUPTED`. */
  readonly stop?: AbortSignal;
}

/** Resolves the model first: a wrong name or a missing key is told before anything is made. */
export async function openChosenModel(
  io: CommandIo,
  context: CommandContext,
  choice: ModelChoice,
): Promise<ResolvedModel> {
  return openModel(choice, context.config, modelDepsOf(io, context));
}

function modelDepsOf(io: CommandIo, context: CommandContext): ModelDeps {
  return { environment: io.environment, host: systemHost, homeFolder: context.home.folder };
}

export async function seatAgent(
  io: CommandIo,
  context: CommandContext,
  seat: Seat,
  model: ResolvedModel,
  { audience = "terminal", yes, note = (text) => complain(io, text.trim()), stop }: AgentUse,
): Promise<SeatedAgent> {
  const { createAgent } = await import("@turnkeeper/agent-core");
  const {
    config,
    loaded: { hasUnreadRules },
  } = context;
  const toolSet = await openToolSet(io, context, { audience, stop });
  const { tools, policy } = toolSet;
  const { model: titleModel, complaint } = await openTitleModel(config, modelDepsOf(io, context));
  if (complaint !== undefined) complain(io, complaint);
  const isUncounted = config.agent.delegation.budget?.cost !== undefined && model.price === undefined;
  if (isUncounted)
    complain(
      io,
      `agent.delegation.budget.cost bounds nothing: ${model.id} has no price. Set models."${model.id}".price.`,
    );
  const workspace = workingFolderOf(io);
  const approvalPolicy = policyOf({ config, policy, workspace, yes, hasUnreadRules, note });
  try {
    const agent = await createAgent(
      {
        store: seat.store,
        model,
        tools,
        approvalPolicy,
        host: systemHost,
        presence: seat.presence,
        endProcesses: endLeftProcesses,
        ...(titleModel ? { titleModel } : {}),
      },
      agentOptionsOf(isUncounted ? withoutCost(config) : config, workspace, {
        audience,
        isAttended: audience === "terminal" && io.stderr.isTerminal,
      }),
    );
    const close = (): Promise<void> =>
      closeAll([() => toolSet.close(), () => model.close(), async () => titleModel?.close(), () => agent.close()]);
    return { agent, model, close };
  } catch (error) {
    await toolSet.close();
    await titleModel?.close();
    throw error;
  }
}

/** Everything a command that runs turns works with. */
export interface AgentSetUp {
  readonly context: CommandContext;
  readonly seat: Seat;
  readonly seated: SeatedAgent;
}

/** Reads the settings, opens model, store and agent in this order, and tells what the user should know of the model. */
export async function setUpAgent(
  io: CommandIo,
  flags: CommonFlags & { readonly model?: string },
  use: AgentUse = {},
): Promise<AgentSetUp> {
  const context = await readContext(io, flags);
  const { config, loaded } = context;
  const choice = chooseModel(config, loaded.configured.has("model"), {
    flag: flags.model,
    environment: io.environment,
  });
  const model = await openChosenModel(io, context, choice);
  const seat = await takeSeat(context, use.audience ?? "terminal");
  const seated = await seatAgent(io, context, seat, model, use).catch(async (error: unknown) => {
    await closeAll([() => model.close(), () => seat.close()]);
    throw error;
  });
  const note = modelNote(choice, model, config);
  if (note !== undefined) complain(io, note);
  return { context, seat, seated };
}

/**
 * The same; nothing, and all of it closed again, where a stop comes first: what somebody else has to start may not start
 * at all. A second press ends the process.
 */
export async function setUpUnlessStopped(
  io: CommandIo,
  flags: CommonFlags & { readonly model?: string },
  use: AgentUse = {},
): Promise<AgentSetUp | undefined> {
  const asked = new AbortController();
  const stop = (): void => asked.abort();
  const ladder = new StopLadder(io, { soft: stop, hard: () => io.exitNow(exitCode.interrupted), shutdown: stop });
  try {
    const setUp = await setUpAgent(io, flags, { ...use, stop: asked.signal });
    if (!asked.signal.aborted) return setUp;
    await closeAll([() => setUp.seat.close(), () => setUp.seated.close()]);
    return undefined;
  } catch (error) {
    if (asked.signal.aborted && CodedError.is(error, "CALL_INTERRUPTED")) return undefined;
    throw error;
  } finally {
    ladder.dispose();
  }
}
