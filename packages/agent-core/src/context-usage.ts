import type { ResolvedModel } from "@turnkeeper/models";
import type { CompactionHealth, Entry, EntryBody, StateStore } from "@turnkeeper/state-store";
import { contextLimits } from "./compaction/context-limits.ts";
import { entryTokens, overheadTokens, plausibleTokens } from "./compaction/token-estimate.ts";
import type { ResolvedAgentOptions } from "./options.ts";
import { declarationOf } from "./tool-input.ts";
import type { ToolSet } from "./tool-input.ts";

/** How full a session's context is, for people: nothing is decided by it. */
export interface ContextUsage {
  readonly sessionId: string;
  readonly modelId: string;
  readonly revision: number;
  /** How many entries the model sees, by role. */
  readonly entryCounts: Readonly<Partial<Record<EntryBody["role"], number>>>;
  readonly usedTokens: number;
  /**
   * What `usedTokens` starts from: what the provider counted at the first answer of the last turn, or else at the last
   * answer; the rest is estimated. `estimate`: nothing was counted since the context was last shortened, and instructions
   * and tools, which are in every count of a provider's, are estimated too.
   */
  readonly anchor: "turn-base" | "last-response" | "estimate";
  readonly windowTokens?: number;
  /** From here on it is summarised. */
  readonly thresholdTokens: number;
  readonly compactionCount: number;
  /** Estimated tokens of what was said since the last summary; absent where there is none. */
  readonly tokensSinceCompaction?: number;
  /** How the last attempts fared, where any failed. */
  readonly health?: CompactionHealth;
  /** For so long no summary is asked for, in milliseconds. */
  readonly coolDownMs: number;
}

interface Measured {
  readonly entry: Entry;
  readonly index: number;
  readonly tokens: number;
}

/** Answers whose usage was counted since the newest summary, and believably: an earlier one counted a longer context. */
function measuredAnswers(entries: readonly Entry[]): readonly Measured[] {
  const summarySeq = entries.reduce(
    (seq, { body, seq: own }) => (body.role === "summary" ? Math.max(seq, own) : seq),
    0,
  );
  let estimate = 0;
  return entries.flatMap((entry, index) => {
    estimate += entryTokens(entry.body);
    const tokens = entry.seq > summarySeq ? plausibleTokens(entry.body, estimate) : undefined;
    return tokens === undefined ? [] : [{ entry, index, tokens }];
  });
}

/** Reasoning goes with the newest answer alone: older reasoning is left out of requests, or soon will be. */
function withoutReasoning(body: EntryBody): EntryBody {
  if (body.role !== "assistant") return body;
  return { ...body, parts: body.parts.filter(({ type }) => type !== "reasoning") };
}

function usedFrom(
  { entry, index, tokens }: Measured,
  entries: readonly Entry[],
  newestAnswer: Entry | undefined,
): number {
  const reasoning = entry.body.role === "assistant" ? (entry.body.usage?.reasoningTokens ?? 0) : 0;
  const staleTokens = entry === newestAnswer ? 0 : Math.max(0, reasoning);
  const since = entries
    .slice(index + 1)
    .reduce((sum, one) => sum + entryTokens(one === newestAnswer ? one.body : withoutReasoning(one.body)), 0);
  return Math.max(0, tokens - staleTokens) + since;
}

function usedTokensOf(entries: readonly Entry[], overhead: () => number): Pick<ContextUsage, "usedTokens" | "anchor"> {
  const newestAnswer = entries.findLast(({ body }) => body.role === "assistant");
  const measured = measuredAnswers(entries);
  const firstOfTurn = entries.find(({ body, turnId }) => body.role === "assistant" && turnId === newestAnswer?.turnId);
  const base = measured.find(({ entry }) => entry === firstOfTurn);
  const last = measured.at(-1);
  if (base) return { usedTokens: usedFrom(base, entries, newestAnswer), anchor: "turn-base" };
  if (last) return { usedTokens: usedFrom(last, entries, newestAnswer), anchor: "last-response" };
  return { usedTokens: entries.reduce((sum, { body }) => sum + entryTokens(body), overhead()), anchor: "estimate" };
}

/** Reads how full a session's context is, as the model of `deps` would be asked with it. Reads the whole context. */
export async function readContextUsage(
  { store, model, tools }: { readonly store: StateStore; readonly model: ResolvedModel; readonly tools: ToolSet },
  { system = "", compaction: { threshold } }: Pick<ResolvedAgentOptions, "system" | "compaction">,
  sessionId: string,
): Promise<ContextUsage> {
  const { entries, revision, compactionCount } = await store.transcript.load(sessionId);
  const { health, coolDownMs } = await store.transcript.compactionHealth(sessionId);
  const { windowTokens, thresholdTokens } = contextLimits(model.contextWindowTokens, threshold);
  const entryCounts: Partial<Record<EntryBody["role"], number>> = {};
  for (const { body } of entries) entryCounts[body.role] = (entryCounts[body.role] ?? 0) + 1;
  const summaryIndex = entries.findLastIndex(({ body }) => body.role === "summary");
  const sinceTokens = entries.slice(summaryIndex + 1).reduce((sum, { body }) => sum + entryTokens(body), 0);
  return {
    sessionId,
    modelId: model.id,
    revision,
    entryCounts,
    ...usedTokensOf(entries, () => overheadTokens(system, [...tools.values()].map(declarationOf))),
    ...(windowTokens === undefined ? {} : { windowTokens }),
    thresholdTokens,
    compactionCount,
    ...(summaryIndex < 0 ? {} : { tokensSinceCompaction: sinceTokens }),
    ...(health ? { health } : {}),
    coolDownMs,
  };
}
