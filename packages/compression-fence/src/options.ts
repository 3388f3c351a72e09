import { CodedError } from "@turnkeeper/kernel";
import type { CompressionFenceErrorCode } from "./errors.ts";

export interface CompressionFenceOptions {
  /**
   * After how many milliseconds from the fence's creation, on the monotonic clock, no commit begins any more; finite,
   * above 0. Default: no deadline. One that has begun is never cut short by it.
   */
  readonly deadlineMs?: number;
}

export type ResolvedCompressionFenceOptions = Readonly<{ deadlineMs: number }>;

function invalid(option: string, expectation: string, value: unknown): CodedError<CompressionFenceErrorCode> {
  const message = `createCompressionFence: option ${option} must be ${expectation}, got ${String(value)}.`;
  return new CodedError("OPTION_INVALID", message, { context: { option } });
}

export function resolveCompressionFenceOptions(options: CompressionFenceOptions): ResolvedCompressionFenceOptions {
  for (const [key, value] of Object.entries(options))
    if (key !== "deadlineMs") throw invalid(key, "absent (there is no such option)", value);
  const { deadlineMs } = options;
  // No deadline is the default: a summary's own time-out belongs to the model call, the fence only keeps late ones out.
  if (deadlineMs === undefined) return Object.freeze({ deadlineMs: Number.POSITIVE_INFINITY });
  if (!Number.isFinite(deadlineMs) || deadlineMs <= 0)
    throw invalid("deadlineMs", "a finite number of milliseconds above 0", deadlineMs);
  return Object.freeze({ deadlineMs });
}
