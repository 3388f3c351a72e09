import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { Timers } from "@turnkeeper/kernel";

export interface Pace {
  readonly timers: Timers;
  /** Waits this long before each text delta; undefined: never waits. */
  readonly paceMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Waits, or rejects with the signal's reason as soon as it aborts; leaves no timer and no listener behind. */
function pause(timers: Timers, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const settle = (act: () => void): void => {
      cancel();
      signal?.removeEventListener("abort", stop);
      act();
    };
    const stop = (): void => settle(() => reject(signal?.reason));
    const cancel = timers.after(ms, () => settle(resolve));
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Streams parts one by one as they are asked for; `silence` is a stream that opens and then says nothing. */
export function streamOf(
  parts: readonly LanguageModelV3StreamPart[] | "silence",
  { timers, paceMs, signal }: Pace,
): ReadableStream<LanguageModelV3StreamPart> {
  if (parts === "silence") {
    return new ReadableStream({
      start: (controller) => {
        controller.enqueue({ type: "stream-start", warnings: [] });
        signal?.addEventListener("abort", () => controller.error(signal.reason), { once: true });
      },
    });
  }
  let index = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        const part = parts[index++];
        if (!part) return controller.close();
        if (paceMs !== undefined && part.type === "text-delta") await pause(timers, paceMs, signal);
        controller.enqueue(part);
      },
    },
    { highWaterMark: 0 },
  );
}
