import type { ContextUsage } from "@turnkeeper/agent-core";
import { counted } from "./count-text.ts";
import { printable } from "./style.ts";

const tokens = (count: number): string => `${count.toLocaleString("en")} tokens`;

function seenLine({ entryCounts }: ContextUsage): string {
  const roles = Object.entries(entryCounts);
  const total = roles.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return "The model sees nothing of it yet.";
  return `The model sees ${counted(total, "entry", "entries")} (${roles.map(([role, count]) => `${count} ${role}`).join(", ")}).`;
}

function usedLine({ usedTokens, anchor, windowTokens }: ContextUsage): string {
  const share = windowTokens === undefined ? undefined : Math.round((usedTokens / windowTokens) * 100);
  const window =
    share === undefined
      ? "; how many the model can take is not known (providers.NAME.context_window)"
      : ` of ${tokens(windowTokens ?? 0)}, ${share} %`;
  const source = {
    "turn-base": "counted by the provider at the last turn's first answer, and estimated from there",
    "last-response": "counted by the provider at the last answer, and estimated from there",
    estimate: "estimated; the instructions and the tools come on top",
  }[anchor];
  return `Used: about ${tokens(usedTokens)}${window} (${source}).`;
}

function summaryLine({ compactionCount, tokensSinceCompaction }: ContextUsage): readonly string[] {
  if (compactionCount === 0) return [];
  const since =
    tokensSinceCompaction === undefined ? "" : `; about ${tokens(tokensSinceCompaction)} were said since the last time`;
  return [`It has been summarised ${counted(compactionCount, "time")}${since}.`];
}

function nextLine({ usedTokens, thresholdTokens, coolDownMs, health }: ContextUsage): string {
  const why = health?.error === undefined ? "" : ` ${printable(health.error)}`;
  if (coolDownMs > 0)
    return `Next: summaries are paused for ${Math.ceil(coolDownMs / 1000)} s after one that failed; /compact tries at once.${why}`;
  if (usedTokens >= thresholdTokens) return "Next: it is summarised before the model is asked again.";
  return `Next: it is summarised from ${tokens(thresholdTokens)} on, or when the provider says that it is too long.${why}`;
}

/** How full the model's context is, and what happens next about it. */
export function contextLines(usage: ContextUsage): readonly string[] {
  return [
    `Session ${usage.sessionId}, revision ${usage.revision}, model ${usage.modelId}.`,
    seenLine(usage),
    usedLine(usage),
    ...summaryLine(usage),
    nextLine(usage),
  ];
}
