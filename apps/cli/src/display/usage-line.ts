import type { TurnFinished } from "@turnkeeper/agent-core";
import { countText } from "./count-text.ts";

/** What a turn used and cost, on one line; nothing where nobody gave the model a price. */
export function usageLine({ usage }: TurnFinished): string | undefined {
  if (usage?.cost === undefined) return undefined;
  const { inputTokens = 0, cachedInputTokens = 0, outputTokens = 0, cost } = usage;
  const cached = cachedInputTokens > 0 ? `, ${countText(cachedInputTokens)} of them cached` : "";
  const price = cost.toLocaleString("en", { maximumSignificantDigits: 3 });
  return `${countText(inputTokens)} tokens in${cached}, ${countText(outputTokens)} out: cost ${price}.`;
}
