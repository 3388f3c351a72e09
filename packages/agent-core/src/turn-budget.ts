import type { Usage } from "@turnkeeper/state-store";
import type { TurnEnding } from "./turn-ending.ts";

/** What one turn may use; checked before each model call, so the call that uses it up is still answered. */
export interface TurnBudget {
  /** Tokens in and out, as the provider counts them; a provider that counts none is not bounded by it. Default: no bound. */
  readonly tokens?: number;
  /** In the currency of the model's price, or of `costOf`. Default: no bound. */
  readonly cost?: number;
  /** The price of so many tokens; needed with `cost` where the model has no price, and counts where it has one. */
  readonly costOf?: (usage: Usage) => number;
}

/** How a turn ends that has used up what it may use; nothing while it has not. */
export function budgetEnding(
  { maxIterations, budget }: { readonly maxIterations: number; readonly budget: TurnBudget },
  spent: { readonly stepCount: number; readonly usage: Usage },
): TurnEnding | undefined {
  const used = usedUp(maxIterations, budget, spent);
  if (!used) return undefined;
  const detail = `The turn ${used.what} without coming to an answer. Send a message to go on from here.`;
  return { outcome: "failed", reason: used.reason, detail };
}

function usedUp(
  maxIterations: number,
  { tokens, cost, costOf }: TurnBudget,
  { stepCount, usage }: { readonly stepCount: number; readonly usage: Usage },
): { readonly reason: string; readonly what: string } | undefined {
  if (stepCount >= maxIterations) return { reason: "MAX_ITERATIONS", what: `made ${maxIterations} model calls` };
  const usedTokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
  if (tokens !== undefined && usedTokens >= tokens)
    return { reason: "TURN_BUDGET", what: `used ${usedTokens} tokens of the ${tokens} it may use` };
  const usedCost = costOf ? costOf(usage) : (usage.cost ?? 0);
  if (cost !== undefined && usedCost >= cost)
    return { reason: "TURN_BUDGET", what: `cost ${usedCost} of the ${cost} it may cost` };
  return undefined;
}
