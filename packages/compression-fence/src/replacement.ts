import type { CompressionFence } from "./compression-fence.ts";
import type { FenceRefusal } from "./fence-state.ts";

/** One compaction: what is summarised, how, and how the summary takes its place. */
export interface Replacement<Basis, Summary, Applied> {
  /** What the summary is made from: say, the last entry's position and how many compactions came before. */
  readonly basis: Basis;
  /** Makes the summary. May take minutes; entries may be appended meanwhile. */
  summarise(basis: Basis): Promise<Summary>;
  /** Writes it, in one transaction that refuses a basis which no longer holds. Give it no signal: it must not be torn. */
  apply(basis: Basis, summary: Summary): Promise<Applied>;
}

/** The fence admitted no commit: nothing was written. */
export interface RefusedReplacement {
  readonly kind: "refused";
  readonly why: FenceRefusal;
}

/**
 * Summarises and commits through the fence; answers what `apply` answered, or `refused` with nothing written.
 *
 * The basis handed to `summarise` is the one handed to `apply`, whatever was appended in between (COMP-1), and the
 * commit is in flight for exactly as long as `apply` runs (COMP-2). A fence that is already closed costs no model call.
 * Rejects with what `summarise` or `apply` rejected; the fence is free again then.
 */
export async function replaceWithSummary<Basis, Summary, Applied>(
  fence: CompressionFence,
  replacement: Replacement<Basis, Summary, Applied>,
): Promise<Applied | RefusedReplacement> {
  const { basis } = replacement;
  const closed = fence.refusal;
  // Another commit in flight may well be over by the time this summary is ready; only a closed fence is final.
  if (closed !== undefined && closed !== "committing") return { kind: "refused", why: closed };
  const summary = await replacement.summarise(basis);
  const why = fence.refusal;
  const commit = fence.begin();
  if (commit === undefined) return { kind: "refused", why: why ?? "committing" };
  try {
    return await replacement.apply(basis, summary);
  } finally {
    commit.finish();
  }
}
