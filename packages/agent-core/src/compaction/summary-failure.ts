import type { CompactionHealth } from "@turnkeeper/state-store";
import type { ModelFailure } from "@turnkeeper/models";

/**
 * Why no summary came of an attempt. `stall`: silent for too long, or too slow; `output-cap`: cut at the model's limit;
 * `garbled`: no JSON, a closed stream, nothing said, nothing shortened; `unavailable`: the model does not answer now, and
 * would not answer the turn either.
 */
export type SummaryFailureKind = "stall" | "output-cap" | "garbled" | "unavailable";

export interface SummaryFailure {
  readonly kind: SummaryFailureKind;
  /** One line for people. */
  readonly message: string;
}

const garbledCodes: ReadonlySet<ModelFailure["code"]> = new Set([
  "MODEL_STREAM_CUT",
  "MODEL_BAD_RESPONSE",
  "MODEL_EMPTY",
  "MODEL_FAILED",
]);

export function summaryFailureOf({ code, message }: ModelFailure): SummaryFailure {
  if (code === "MODEL_TIMEOUT") return { kind: "stall", message };
  return { kind: garbledCodes.has(code) ? "garbled" : "unavailable", message };
}

/** The steps of the ladder; the last one is for ever. */
const rungsMs = [60_000, 300_000, 900_000] as const;
const garbledCoolDownMs = 30_000;

function rungMs(count: number, contextTimeoutMs: number): number {
  const rung = rungsMs[Math.min(count, rungsMs.length) - 1] ?? rungsMs[0];
  // A shorter pause than one attempt takes is none.
  return Math.max(rung, contextTimeoutMs);
}

/** What is known of a session's summaries after one more has failed, and for how long none is asked for. */
export function afterFailure(
  health: CompactionHealth | undefined,
  { kind, message }: SummaryFailure,
  contextTimeoutMs: number,
): { readonly health: CompactionHealth; readonly coolDownMs: number } {
  const { stallCount = 0, outputCapCount = 0, thinCount = 0 } = health ?? {};
  const known = { stallCount, outputCapCount, thinCount, error: message };
  switch (kind) {
    case "stall":
      return {
        health: { ...known, stallCount: stallCount + 1 },
        coolDownMs: rungMs(stallCount + 1, contextTimeoutMs),
      };
    case "output-cap":
      return {
        health: { ...known, outputCapCount: outputCapCount + 1 },
        coolDownMs: rungMs(outputCapCount + 1, contextTimeoutMs),
      };
    case "garbled":
      return { health: known, coolDownMs: garbledCoolDownMs };
    case "unavailable":
      return { health: known, coolDownMs: rungsMs[0] };
  }
}
