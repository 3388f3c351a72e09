import type { ResolvedModel } from "@turnkeeper/models";
import type { AssistantBody, CompactionHealth, Entry, EntryBody, StateStore, Usage } from "@turnkeeper/state-store";
import { contextLimits } from "./compaction/context-limits.ts";
import { entryTokens, measuredTokens } from "./compaction/token-estimate.ts";

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
   * answer; the rest is estimated. `estimate`: nothing was counted since the context was last shortened.
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

type Measured = Entry & { readonly body: AssistantBody & { readonly usage: Usage } };

/** Answers whose usage was counted since the newest summary: an earlier one counted a longer context. */
function measuredEntries(entries: readonly Entry[]): readonly Measured[] {
  const summarySeq = entries.reduce(
    (seq, { body, seq: own }) => (body.role === "summary" ? Math.max(seq, own) : seq),
    0,
  );
  const isMeasured = (entry: Entry): entry is Measured =>
    entry.seq > summarySeq &&
    entry.body.role === "assistant" &&
    entry.body.usage !== undefined &&
    measuredTokens(entry.body.usage) !== undefined;
  return entries.filter(isMeasured);
}

/** Reasoning goes with the newest answer alone: older reasoning is left out of requests, or soon will be. */
function withoutReasoning(body: EntryBody): EntryBody {
  if (body.role !== "assistant") return body;
  return { ...body, parts: body.parts.filter(({ type }) => type !== "reasoning") };
}

function usedFrom(anchor: Measured, entries: readonly Entry[], newestAnswer: Entry | undefined): number {
  const { usage } = anchor.body;
  const staleReasoning = anchor === newestAnswer ? 0 : Math.max(0, usage.reasoningTokens ?? 0);
  const since = entries
    .slice(entries.indexOf(anchor) + 1)
    .reduce((sum, entry) => sum + entryTokens(entry === newestAnswer ? entry.body : withoutReasoning(entry.body)), 0);
  return Math.max(0, (measuredTokens(usage) ?? 0) - staleReasoning) + since;
}

function usedTokensOf(entries: readonly Entry[]): Pick<ContextUsage, "usedTokens" | "anchor"> {
  const newestAnswer = entries.findLast(({ body }) => body.role === "assistant");
  const measured = measuredEntries(entries);
  const firstOfTurn = entries.find(({ body, turnId }) => body.role === "assistant" && turnId === newestAnswer?.turnId);
  const base = measured.find((entry) => entry === firstOfTurn);
  const last = measured.at(-1);
  if (base) return { usedTokens: usedFrom(base, entries, newestAnswer), anchor: "turn-base" };
  if (last) return { usedTokens: usedFrom(last, entries, newestAnswer), anchor: "last-response" };
  return { usedTokens: entries.reduce((sum, { body }) => sum + entryTokens(body), 0), anchor: "estimate" };
}

/** Reads how full a session's context is, as the model of `deps` would be asked with it. Reads the whole context. */
export async function readContextUsage(
  { store, model }: { readonly store: StateStore; readonly model: ResolvedModel },
  { threshold }: { readonly threshold: number | undefined },
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
    ...usedTokensOf(entries),
    ...(windowTokens === undefined ? {} : { windowTokens }),
    thresholdTokens,
    compactionCount,
    ...(summaryIndex < 0 ? {} : { tokensSinceCompaction: sinceTokens }),
    ...(health ? { health } : {}),
    coolDownMs,
  };
}
