import type { ResolvedModel } from "@turnkeeper/models";
import type { StateStore, Usage } from "@turnkeeper/state-store";
import type { Host } from "@turnkeeper/kernel";
import type { InputlessBody } from "../inputless-turn.ts";
import { addUsage } from "../step-reader.ts";
import { Compactor } from "./compactor.ts";
import { contextLimits } from "./context-limits.ts";
import { entryTokens } from "./token-estimate.ts";

export interface CompactionByHandDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly model: ResolvedModel;
}

export interface CompactionByHandSettings {
  readonly modelAttempts: number;
  readonly compaction: { readonly threshold: number | undefined; readonly contextTimeoutMs: number };
}

/**
 * A turn that only compacts its session, because somebody asked for it: whatever failed before, it is tried. It ends
 * as answered where a summary was applied or none could be of use, else as failed with `COMPACTION_FAILED`.
 */
export function compactionByHand(
  deps: CompactionByHandDeps,
  { modelAttempts, compaction }: CompactionByHandSettings,
): InputlessBody {
  return async (scope, emit) => {
    let usage: Usage = {};
    const onUsage = (one: Usage): void => {
      usage = addUsage(usage, one);
      emit({ type: "usage", ...one });
    };
    const { entries } = await deps.store.transcript.load(scope.sessionId);
    const usedTokens = entries.reduce((sum, { body }) => sum + entryTokens(body), 0);
    const compactor = new Compactor(
      { ...deps, emit, onUsage },
      { contextTimeoutMs: compaction.contextTimeoutMs, modelAttempts },
      contextLimits(deps.model.contextWindowTokens, compaction.threshold),
      scope,
    );
    const outcome = await compactor.compact({ cause: "manual", squeeze: 0, isLast: false, usedTokens });
    if (outcome.kind === "applied" || outcome.reason === "infeasible") return { outcome: "answered", text: "", usage };
    return { outcome: "failed", reason: "COMPACTION_FAILED", detail: outcome.detail, usage };
  };
}
