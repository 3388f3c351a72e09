/**
 * What a session's turns said and did, written step by step under a grant.
 *
 * Owns APPEND-1: an append with a stale token leaves transcript, inbox and turn untouched.
 * Owns APPEND-2: entries and the settlement of the inputs they answer commit together.
 * Keeps COMP-1 in the store: a compaction names the basis it was made from. When one may begin is compression-fence's.
 *
 * | an append finds | it answers |
 * | --- | --- |
 * | every key known, with the same content | committed, whoever asks |
 * | a key known with other content | ENTRY_CONFLICT |
 * | another grant, or none | stale-token |
 * | a turn that does not run, an input it never took, a result without a call | STORE_CONTRACT |
 * | none of these | committed, with what was not stored yet |
 */
import type { CompactionHealth } from "./compaction-health.ts";
import type { Entry, EntryDraft } from "./entry.ts";
import type { Grant } from "./identity.ts";
import type { InputEnd } from "./inbox.ts";

export interface LoadOptions {
  /** Archived and late entries too, in order of appending: for people. Default false: model context, in its order. */
  readonly all?: boolean;
  /** One turn's entries only. */
  readonly turnId?: string;
  /** Entries with a greater `seq` only. */
  readonly afterSeq?: number;
  /** Entries with a smaller `seq` only: with `limit`, the page before what was read already. */
  readonly beforeSeq?: number;
  /** The newest so many, still oldest first. */
  readonly limit?: number;
  /** The oldest so many instead: with `afterSeq`, the page behind what was read already. Not beside `limit`. */
  readonly first?: number;
}

export interface Transcript {
  readonly entries: readonly Entry[];
  /** Counts every change of the session's transcript; 0 for a session that does not exist. */
  readonly revision: number;
  /** How many summaries have been applied: half of a compaction's basis. */
  readonly compactionCount: number;
}

export interface AppendRequest {
  readonly grant: Grant;
  readonly turnId: string;
  readonly entries: readonly EntryDraft[];
  /** The inputs that these entries settle; each was taken by this turn, or is the notice of a child (APPEND-2). */
  readonly settledInputs?: readonly { readonly inputId: string; readonly end: InputEnd }[];
}

export type AppendResult =
  | { readonly kind: "committed"; readonly revision: number }
  /** The grant was replaced: transcript, inbox and turn are untouched (APPEND-1). */
  | { readonly kind: "stale-token" };

/** What a summary was made from: every active entry up to `throughSeq`, after so many earlier compactions. */
export interface CompactionBasis {
  readonly throughSeq: number;
  readonly compactionCount: number;
}

export interface CompactionRequest {
  readonly grant: Grant;
  readonly turnId: string;
  readonly basis: CompactionBasis;
  /** The summary that takes their place. */
  readonly summary: EntryDraft;
  /** What is known of the session's summaries from then on. Default: nothing, so that a success ends every cool-down. */
  readonly health?: CompactionHealth;
}

export type CompactionResult =
  | { readonly kind: "applied"; readonly revision: number }
  | { readonly kind: "stale-token" }
  /** Another compaction came first: this summary no longer describes what it would replace (COMP-1). */
  | { readonly kind: "stale-basis" };

export interface CompactionHealthRequest {
  readonly grant: Grant;
  /** Stored as it is given; absent: nothing is known, as before the first attempt. */
  readonly health?: CompactionHealth;
  /**
   * Opens a cool-down of so many milliseconds from now by the store's clock. One that lasts longer already stays.
   * Absent: `coolDownEnds` is stored as it is given, so that an attempt can be taken back exactly.
   */
  readonly coolDownMs?: number;
}

export type CompactionHealthResult =
  /** With what is stored now. A session that is gone knows nothing, and is no error. */
  { readonly kind: "set"; readonly health?: CompactionHealth } | { readonly kind: "stale-token" };

export interface SearchOptions {
  /** In this session only. */
  readonly sessionId?: string;
  /** The greatest number of hits. Default 100. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

export interface SearchHit {
  readonly sessionId: string;
  readonly entry: Entry;
  /** The words around the first term, on one line of at most 240 characters and two ellipses. */
  readonly snippet: string;
}

export interface SearchPage {
  readonly hits: readonly SearchHit[];
  /** Give it back as `cursor` for the next page; absent on the last. */
  readonly nextCursor?: string;
}

export interface TranscriptStore {
  load(sessionId: string, options?: LoadOptions): Promise<Transcript>;
  /**
   * One step of a turn, all of it or nothing. Keys first: when every key is known with the same digest the step had
   * already been committed, and that is the answer even under a stale token; another digest rejects with
   * `ENTRY_CONFLICT`. Then the token. Keeps APPEND-1 and APPEND-2. Safe to repeat after an indeterminate failure.
   */
  append(request: AppendRequest): Promise<AppendResult>;
  /** Archives the basis and puts the summary in its place; entries appended since stay, in order, once (COMP-1). */
  applyCompaction(request: CompactionRequest): Promise<CompactionResult>;
  /** How the session's summaries have fared, and for how many milliseconds more none is to be asked for. A cheap read. */
  compactionHealth(sessionId: string): Promise<{ readonly health?: CompactionHealth; readonly coolDownMs: number }>;
  /** Notes how an attempt fared, or takes that back. Only under a grant that stands; changes no revision. */
  setCompactionHealth(request: CompactionHealthRequest): Promise<CompactionHealthResult>;
  /**
   * Entries that have every word of `text` in them, inside longer words too, whatever the case: the last stored first,
   * archived and late ones too. No character of it is a pattern, and no text is refused; one without a word finds
   * nothing. What is stored while the pages are read is not in them. Rejects with `STORE_CONTRACT` for a cursor that
   * is none. Not one transaction but several small ones, so that a long search holds up nobody.
   */
  search(text: string, options?: SearchOptions): Promise<SearchPage>;
}
