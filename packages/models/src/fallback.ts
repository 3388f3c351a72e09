import type { ResolvedModel } from "./resolved-model.ts";

/**
 * Several models as one: the first, with the next ones to ask in its place when its route fails.
 *
 * Whoever calls it decides when (`ModelFailure.isOfRoute`, and nothing of an answer seen), so that what one model said
 * is never told to another as its own. Closing it closes all of them.
 */
export function withFallback(first: ResolvedModel, ...others: readonly ResolvedModel[]): ResolvedModel {
  const [next, ...rest] = others;
  if (!next) return first;
  const fallback = withFallback(next, ...rest);
  const close = async (): Promise<void> => {
    const closings = await Promise.allSettled([first.close(), fallback.close()]);
    for (const closing of closings) if (closing.status === "rejected") throw closing.reason;
  };
  return { ...first, fallback, close, [Symbol.asyncDispose]: close };
}
