import type { Host } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import type { Entry, Usage } from "@turnkeeper/state-store";
import { durationText } from "../duration-text.ts";
import { callModel } from "../model-call.ts";
import type { ModelStep } from "../model-call.ts";
import type { TurnScope } from "../turn-machinery.ts";
import { excerptOf } from "./excerpt.ts";
import { startSummaryClock } from "./summary-clock.ts";
import type { SummaryClock } from "./summary-clock.ts";
import { summaryFailureOf } from "./summary-failure.ts";
import type { SummaryFailure } from "./summary-failure.ts";
import { summaryRequest } from "./summary-request.ts";

export type WrittenSummary =
  | { readonly kind: "written"; readonly text: string }
  | { readonly kind: "failed"; readonly failure: SummaryFailure }
  /** The turn was stopped, or lost its lease: `reason` says which. */
  | { readonly kind: "stopped"; readonly reason: unknown };

export interface SummaryWriterDeps {
  readonly host: Host;
  readonly model: ResolvedModel;
  onUsage(usage: Usage): void;
}

export interface SummaryWriterSettings {
  /** How long the model may be silent; five times that ends the summary whatever comes. */
  readonly contextTimeoutMs: number;
  readonly modelAttempts: number;
}

/** Less than this tells a model nothing of a conversation. */
const excerptTokensMin = 500;

/**
 * Has the turn's own model summarise a basis, outside any lock and transaction. What comes of it is progress of the
 * turn. An excerpt that is itself too long is halved until it fits. Never rejects.
 */
export async function writeSummary(
  deps: SummaryWriterDeps,
  settings: SummaryWriterSettings,
  scope: TurnScope,
  basis: readonly Entry[],
  excerptTokens: number,
): Promise<WrittenSummary> {
  using clock = startSummaryClock(deps.host, scope.interrupt.signal, settings.contextTimeoutMs);
  for (let tokens = excerptTokens; ; tokens /= 2) {
    const step = await ask(deps, settings, scope, clock, excerptOf(basis, tokens));
    if (step.reader.usage) deps.onUsage(step.reader.usage);
    const isTooLong = step.failure?.code === "MODEL_CONTEXT_OVERFLOW" && step.stopped === undefined;
    if (!isTooLong || tokens / 2 < excerptTokensMin) return summaryOf(step, clock, settings);
  }
}

function ask(
  { host, model }: SummaryWriterDeps,
  { contextTimeoutMs, modelAttempts }: SummaryWriterSettings,
  scope: TurnScope,
  clock: SummaryClock,
  excerpt: string,
): Promise<ModelStep> {
  const onEvent = (): void => clock.progress();
  return callModel(
    {
      host,
      clock: scope.clock,
      model,
      signal: clock.signal,
      beforeSideEffect: () => scope.beforeSideEffect(),
      onEvent,
      onRetry: () => {},
    },
    { attempts: modelAttempts, silenceMs: contextTimeoutMs },
    summaryRequest(excerpt),
  );
}

function summaryOf(
  { reader, failure, stopped }: ModelStep,
  clock: SummaryClock,
  { contextTimeoutMs }: SummaryWriterSettings,
): WrittenSummary {
  const failed = (kind: SummaryFailure["kind"], message: string): WrittenSummary => ({
    kind: "failed",
    failure: { kind, message },
  });
  if (clock.hasRunOut)
    return failed("stall", `The summary came too slowly (${durationText(contextTimeoutMs)} of silence are borne).`);
  if (stopped !== undefined) return { kind: "stopped", reason: stopped };
  if (failure) return { kind: "failed", failure: summaryFailureOf(failure) };
  if (reader.finishReason === "length") return failed("output-cap", "The summary was cut at the model's output limit.");
  const text = reader.text().trim();
  return text === "" ? failed("garbled", "The model said nothing that could be a summary.") : { kind: "written", text };
}
