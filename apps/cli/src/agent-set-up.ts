import path from "node:path";
import type { Agent, AgentOptions, AnyTool, ToolDefinition } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import type { StateStore } from "@turnkeeper/state-store";
import type { ApprovalPolicy } from "@turnkeeper/tools";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { closeAll, openStore, readContext } from "./command-context.ts";
import type { CommandContext, CommonFlags } from "./command-context.ts";
import { complain } from "./command-io.ts";
import type { CommandIo } from "./command-io.ts";
import { defaultConfig } from "./config/config.ts";
import type { Config } from "./config/config.ts";
import { endLeftProcesses } from "./left-processes.ts";
import { messageBytesMax } from "./message.ts";
import { chooseModel, modelNote, openModel } from "./model-choice.ts";
import type { ModelChoice } from "./model-choice.ts";
import { workingFolderOf } from "./places.ts";
import { socketFolderOf } from "./store-location.ts";

/** What a process needs to take part in a store's sessions. */
export interface Seat {
  readonly store: StateStore;
  readonly presence: ProcessPresence;
  close(): Promise<void>;
}

/** Opens the store and this process's liveness socket beside it. */
async function takeSeat(context: CommandContext): Promise<Seat> {
  const { openProcessPresence } = await import("@turnkeeper/turn-lease");
  const store = await openStore(context);
  const presence = await openProcessPresence(
    { host: systemHost },
    { socketFolder: socketFolderOf(context.store.path) },
  );
  return { store, presence, close: () => closeAll([() => store.close(), () => presence.close()]) };
}

/** The configuration in an agent's own words: milliseconds, camel case. */
export function agentOptionsOf(config: Config, workspace: string, isAttended: boolean): AgentOptions {
  const { turn_lease, turn_liveness, compression, max_iterations, guardrails } = config.agent;
  // The default depends on the window, which is the agent's to know.
  const isChosen = compression.threshold !== defaultConfig.agent.compression.threshold;
  return {
    system: systemPrompt(workspace),
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
  };
}

function systemPrompt(workspace: string): string {
  return [
    `You are Turnkeeper, an assistant in a terminal. Your workspace is the folder ${workspace}; paths are relative to it.`,
    "Look things up with the tools rather than guess, say what you did in few words, and write Markdown.",
    "A tool call that was denied is not to be repeated: go on without it, or say what you need.",
  ].join("\n");
}

async function toolsOf(
  io: CommandIo,
  context: CommandContext,
): Promise<{ readonly tools: readonly AnyTool[]; readonly policy: ApprovalPolicy }> {
  const { approvalPolicy, builtinTools } = await import("@turnkeeper/tools");
  const { tools } = context.config;
  // A tool that opened the store's file would cancel SQLite's locks on it in this process.
  const forbiddenPaths = [
    `${context.store.path}*`,
    path.resolve(context.loaded.file),
    socketFolderOf(context.store.path),
  ];
  const all = builtinTools(
    { host: systemHost, environment: io.environment },
    {
      shell: { timeoutMs: tools.shell.timeout_s * 1000 },
      files: { forbiddenPaths },
      fetchUrl: { timeoutMs: tools.fetch_url.timeout_s * 1000, allowHosts: tools.fetch_url.allow_hosts },
    },
  );
  const enabled = new Set<string>(tools.enabled);
  const policy = approvalPolicy(tools.approval);
  const workspace = workingFolderOf(io);
  return {
    policy,
    tools: all.filter(({ name }) => enabled.has(name)).map((tool) => underPolicy(tool, policy, workspace)),
  };
}

/** The tool, whose calls need approval as the rules say; what becomes of those that do is asked for each. */
function underPolicy(tool: AnyTool, policy: ApprovalPolicy, workspace: string): AnyTool {
  // A list of tools forgets each tool's input type; the value was checked by that same tool's schema.
  const { needsApproval: own = false, ...definition } = tool as ToolDefinition;
  const needs = (input: unknown): boolean => (typeof own === "function" ? own(input) : own);
  return {
    ...definition,
    needsApproval: (input: unknown) =>
      policy.decide({ name: tool.name, input, workspace, needsApproval: needs(input) }).decision !== "allow",
  };
}

/** An agent with the model it runs on. */
export interface SeatedAgent {
  readonly agent: Agent;
  readonly model: ResolvedModel;
  readonly policy: ApprovalPolicy;
  /** Stops what runs as `shutdown`, leaves what waits to others. */
  close(): Promise<void>;
}

/** Resolves the model first: a wrong name or a missing key is told before anything is made. */
export async function openChosenModel(
  io: CommandIo,
  context: CommandContext,
  choice: ModelChoice,
): Promise<ResolvedModel> {
  return openModel(choice, context.config, { environment: io.environment, host: systemHost });
}

export async function seatAgent(
  io: CommandIo,
  context: CommandContext,
  seat: Seat,
  model: ResolvedModel,
): Promise<SeatedAgent> {
  const [{ createAgent }, { tools, policy }] = await Promise.all([
    import("@turnkeeper/agent-core"),
    toolsOf(io, context),
  ]);
  const agent = await createAgent(
    { store: seat.store, model, tools, host: systemHost, presence: seat.presence, endProcesses: endLeftProcesses },
    agentOptionsOf(context.config, workingFolderOf(io), io.stderr.isTerminal),
  );
  return { agent, model, policy, close: () => closeAll([() => model.close(), () => agent.close()]) };
}

/** Everything a command that runs turns works with. */
export interface AgentSetUp {
  readonly context: CommandContext;
  readonly seat: Seat;
  readonly seated: SeatedAgent;
}

/** Reads the settings, opens model, store and agent in this order, and tells what the user should know of the model. */
export async function setUpAgent(io: CommandIo, flags: CommonFlags & { readonly model?: string }): Promise<AgentSetUp> {
  const context = await readContext(io, flags);
  const { config, loaded } = context;
  const choice = chooseModel(config, loaded.configured.has("model"), {
    flag: flags.model,
    environment: io.environment,
  });
  const model = await openChosenModel(io, context, choice);
  const seat = await takeSeat(context);
  const seated = await seatAgent(io, context, seat, model);
  const note = modelNote(choice, model, config);
  if (note !== undefined) complain(io, note);
  return { context, seat, seated };
}
