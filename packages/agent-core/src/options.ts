import { CodedError } from "@turnkeeper/kernel";
import type { CacheConversation, ModelPrice } from "@turnkeeper/models";
import { checkTurnLeaseOptions } from "@turnkeeper/turn-lease";
import type { TurnBudget } from "./turn-budget.ts";

/** How one agent runs its turns. Times are milliseconds. */
export interface AgentOptions {
  /** Told to the model before the conversation. Default: none. */
  readonly system?: string;
  /** The folder that file tools stay inside. Default: the process's working folder when the agent is made. */
  readonly workspace?: string;
  /** Model calls in one turn before it fails with `MAX_ITERATIONS`. Default 90. */
  readonly maxIterations?: number;
  readonly lease?: {
    /** How long a lease outlives its last renewal. Default 300,000: longer than any pause a healthy process makes. */
    readonly ttlMs?: number;
    /** How often it is renewed. Default 60,000: four chances before it runs out. */
    readonly renewEveryMs?: number;
  };
  /** The watchdog on progress; `undefined` values take the defaults, `false` turns it off. */
  readonly liveness?:
    | false
    | {
        /** A turn without progress for so long is stopped. Default 600,000. */
        readonly timeoutMs?: number;
        /** How often it is looked at. Default 15,000. */
        readonly pollMs?: number;
      };
  /** How long a call waits for a busy session. Default 1,800,000; a call may say otherwise. */
  readonly waitMs?: number;
  /** The largest input, in bytes of UTF-8. Default 1,048,576: more would be in the way of every later turn. */
  readonly inputBytesMax?: number;
  /** Tries of one model call before it counts as failed; only for failures that a repeat may mend. Default 3. */
  readonly modelAttempts?: number;
  /** Calls of one step that run at once, where their tools allow it. Default 8: more compete for one machine. */
  readonly toolConcurrency?: number;
  /**
   * What the application says a session's conversation is, beyond the session, so that its requests find one prompt
   * cache: `generation` counts its resets. Not asked of children. Default, and where it says nothing or throws: the
   * session is all there is.
   */
  readonly conversationOf?: (sessionId: string) => CacheConversation["declared"];
  /** What one turn may use before it fails with `TURN_BUDGET`. Default: nothing bounds it but `maxIterations`. */
  readonly budget?: TurnBudget;
  /** How a conversation that gets too long is summarised. */
  readonly compaction?: {
    /**
     * The share of the model's window at which it is, above 0 and at most 1. Default: 0.5 of a window of 512,000 tokens
     * or more, 0.75 of a smaller one; never above 256,000 tokens. Without a known window only those count.
     */
    readonly threshold?: number;
    /** How long the model may be silent over a summary; five times that ends it. Default 120,000. */
    readonly contextTimeoutMs?: number;
  };
  /** How subagents run: as the agent itself does, but for what stands here. */
  readonly delegation?: {
    /** Subagents in one turn. Default 50: what more would do, they can be told to do. */
    readonly maxChildren?: number;
    /** Subagents of subagents of …, in all. Default 1: none has any of its own. */
    readonly maxDepth?: number;
    /** How long the turn of one may take. Default: as long as it moves. */
    readonly deadlineMs?: number;
    /** Model calls in one's turn. Default: the agent's. */
    readonly maxIterations?: number;
    /** What one's turn may use. Default: the agent's. */
    readonly budget?: TurnBudget;
  };
  readonly guardrails?: {
    /** Whether a turn that goes round in circles is ended; else its model is only told. Default false: somebody watches. */
    readonly hardStop?: boolean;
  };
}

export interface ResolvedAgentOptions {
  readonly system: string | undefined;
  readonly workspace: string;
  readonly maxIterations: number;
  readonly lease: { readonly ttlMs: number; readonly renewEveryMs: number };
  readonly liveness: { readonly timeoutMs: number; readonly pollMs: number } | undefined;
  readonly waitMs: number;
  readonly inputBytesMax: number;
  readonly modelAttempts: number;
  readonly toolConcurrency: number;
  readonly budget: TurnBudget;
  readonly conversationOf: AgentOptions["conversationOf"];
  readonly compaction: { readonly threshold: number | undefined; readonly contextTimeoutMs: number };
  readonly delegation: {
    readonly maxChildren: number;
    readonly maxDepth: number;
    readonly deadlineMs: number | undefined;
    readonly maxIterations: number;
    readonly budget: TurnBudget;
  };
  readonly guardrails: { readonly hardStop: boolean };
}

interface AgentDefaults {
  readonly maxIterations: number;
  readonly lease: { readonly ttlMs: number; readonly renewEveryMs: number };
  readonly liveness: { readonly timeoutMs: number; readonly pollMs: number };
  readonly waitMs: number;
  readonly inputBytesMax: number;
  readonly modelAttempts: number;
  readonly toolConcurrency: number;
  readonly compaction: { readonly contextTimeoutMs: number };
  readonly delegation: { readonly maxChildren: number; readonly maxDepth: number };
  readonly guardrails: { readonly hardStop: boolean };
}

/** What an option that is not given takes; the reason of each number stands at the option. */
export const agentDefaults: AgentDefaults = Object.freeze({
  maxIterations: 90,
  lease: Object.freeze({ ttlMs: 300_000, renewEveryMs: 60_000 }),
  liveness: Object.freeze({ timeoutMs: 600_000, pollMs: 15_000 }),
  waitMs: 1_800_000,
  inputBytesMax: 1_048_576,
  modelAttempts: 3,
  toolConcurrency: 8,
  compaction: Object.freeze({ contextTimeoutMs: 120_000 }),
  delegation: Object.freeze({ maxChildren: 50, maxDepth: 1 }),
  guardrails: Object.freeze({ hardStop: false }),
});

const known = new Set<keyof AgentOptions>([
  "system",
  "workspace",
  "maxIterations",
  "lease",
  "liveness",
  "waitMs",
  "inputBytesMax",
  "modelAttempts",
  "toolConcurrency",
  "budget",
  "conversationOf",
  "compaction",
  "delegation",
  "guardrails",
]);

function refuse(option: string, expected: string, got: unknown): never {
  throw new CodedError("OPTION_INVALID", `Agent option ${option}: expected ${expected}, got ${String(got)}.`, {
    context: { option },
  });
}

function positive(option: string, value: number): number {
  return Number.isFinite(value) && value > 0 ? value : refuse(option, "a finite number above 0", value);
}

function count(option: string, value: number): number {
  return Number.isInteger(value) && value > 0 ? value : refuse(option, "a whole number above 0", value);
}

function onlyKnown(section: string, options: object, names: readonly string[]): void {
  const stranger = Object.keys(options).find((name) => !names.includes(name));
  if (stranger !== undefined) refuse(`${section}.${stranger}`, `one of ${names.join(", ")}`, "an unknown option");
}

/** Refused here as turn-lease would refuse it, rather than once a message is stored. */
function checkedLease(lease: NonNullable<AgentOptions["lease"]>): ResolvedAgentOptions["lease"] {
  onlyKnown("lease", lease, ["ttlMs", "renewEveryMs"]);
  const { ttlMs = agentDefaults.lease.ttlMs } = lease;
  const { renewEveryMs = Math.min(agentDefaults.lease.renewEveryMs, ttlMs / 5) } = lease;
  try {
    checkTurnLeaseOptions({ ttlMs, renewEveryMs });
  } catch (error) {
    if (!CodedError.is(error, "OPTION_INVALID")) throw error;
    const option = `lease.${String(error.context["option"])}`;
    throw new CodedError("OPTION_INVALID", `Agent option ${option}: ${error.message}`, {
      context: { option },
      cause: error,
    });
  }
  return Object.freeze({ ttlMs, renewEveryMs });
}

function checkedLiveness(liveness: NonNullable<AgentOptions["liveness"]>): ResolvedAgentOptions["liveness"] {
  if (liveness === false) return undefined;
  onlyKnown("liveness", liveness, ["timeoutMs", "pollMs"]);
  const timeoutMs = positive("liveness.timeoutMs", liveness.timeoutMs ?? agentDefaults.liveness.timeoutMs);
  const { pollMs = Math.min(agentDefaults.liveness.pollMs, timeoutMs / 4) } = liveness;
  return Object.freeze({ timeoutMs, pollMs: positive("liveness.pollMs", pollMs) });
}

function checkedBudget(budget: TurnBudget, price: ModelPrice | undefined): TurnBudget {
  onlyKnown("budget", budget, ["tokens", "cost", "costOf"]);
  const { tokens, cost, costOf } = budget;
  if (tokens !== undefined) count("budget.tokens", tokens);
  if (cost !== undefined) positive("budget.cost", cost);
  if (cost !== undefined && costOf === undefined && price === undefined)
    refuse("budget.costOf", "the price of tokens, with cost and a model that has no price", costOf);
  return Object.freeze({ ...budget });
}

function checkedCompaction(compaction: NonNullable<AgentOptions["compaction"]>): ResolvedAgentOptions["compaction"] {
  onlyKnown("compaction", compaction, ["threshold", "contextTimeoutMs"]);
  const { threshold, contextTimeoutMs = agentDefaults.compaction.contextTimeoutMs } = compaction;
  if (threshold !== undefined && positive("compaction.threshold", threshold) > 1)
    refuse("compaction.threshold", "a share of at most 1", threshold);
  return Object.freeze({ threshold, contextTimeoutMs: positive("compaction.contextTimeoutMs", contextTimeoutMs) });
}

function checkedDelegation(
  { delegation = {}, maxIterations = agentDefaults.maxIterations, budget = {} }: AgentOptions,
  price: ModelPrice | undefined,
): ResolvedAgentOptions["delegation"] {
  onlyKnown("delegation", delegation, ["maxChildren", "maxDepth", "deadlineMs", "maxIterations", "budget"]);
  const { maxChildren, maxDepth } = { ...agentDefaults.delegation, ...delegation };
  const { deadlineMs } = delegation;
  return Object.freeze({
    maxChildren: count("delegation.maxChildren", maxChildren),
    maxDepth: count("delegation.maxDepth", maxDepth),
    deadlineMs: deadlineMs === undefined ? undefined : positive("delegation.deadlineMs", deadlineMs),
    maxIterations: count("delegation.maxIterations", delegation.maxIterations ?? maxIterations),
    budget: checkedBudget(delegation.budget ?? budget, price),
  });
}

function checkedGuardrails(guardrails: NonNullable<AgentOptions["guardrails"]>): ResolvedAgentOptions["guardrails"] {
  onlyKnown("guardrails", guardrails, ["hardStop"]);
  const { hardStop = agentDefaults.guardrails.hardStop } = guardrails;
  if (typeof hardStop !== "boolean") refuse("guardrails.hardStop", "true or false", hardStop);
  return Object.freeze({ hardStop });
}

/** Checks every value and the relations between them; throws `OPTION_INVALID` naming option, expectation and value. */
export function resolveAgentOptions(
  options: AgentOptions,
  workingFolder: string,
  price?: ModelPrice,
): ResolvedAgentOptions {
  for (const name of Object.keys(options)) {
    if (!known.has(name as keyof AgentOptions)) refuse(name, `one of ${[...known].join(", ")}`, "an unknown option");
  }
  const waitMs = options.waitMs ?? agentDefaults.waitMs;
  if (!Number.isFinite(waitMs) || waitMs < 0) refuse("waitMs", "a finite number of at least 0", waitMs);
  return Object.freeze({
    system: options.system,
    workspace: options.workspace ?? workingFolder,
    maxIterations: count("maxIterations", options.maxIterations ?? agentDefaults.maxIterations),
    lease: checkedLease(options.lease ?? {}),
    liveness: checkedLiveness(options.liveness ?? {}),
    waitMs,
    inputBytesMax: count("inputBytesMax", options.inputBytesMax ?? agentDefaults.inputBytesMax),
    modelAttempts: count("modelAttempts", options.modelAttempts ?? agentDefaults.modelAttempts),
    toolConcurrency: count("toolConcurrency", options.toolConcurrency ?? agentDefaults.toolConcurrency),
    budget: checkedBudget(options.budget ?? {}, price),
    conversationOf: options.conversationOf,
    compaction: checkedCompaction(options.compaction ?? {}),
    delegation: checkedDelegation(options, price),
    guardrails: checkedGuardrails(options.guardrails ?? {}),
  });
}
