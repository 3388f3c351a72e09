import type { Usage } from "@turnkeeper/state-store";

/** One request to a model, told once it has ended; for traces and meters. Nothing of what was said is in it. */
export interface ModelCallReport {
  readonly sessionId: string;
  readonly turnId: string;
  /** `PROVIDER/MODEL`. */
  readonly model: string;
  /** Wall time. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** Until the first of the answer came, in milliseconds; absent where none did. */
  readonly firstOutputMs?: number;
  /** Absent where the answer was cut. */
  readonly finishReason?: string;
  readonly usage?: Usage;
  /** The code of what it failed with, or `stopped` where the turn did not wait for its end. */
  readonly failure?: string;
}
