/**
 * Which requests a provider should send to the same cache.
 *
 * This is about routing alone: what a request is counted and shown under stays the session. A scope is a hash, so a
 * provider learns neither a session's id nor a conversation's key; and whatever is not known for sure makes a scope of
 * the session's own, never one that is shared.
 */
import { createHash } from "node:crypto";

export interface CacheConversation {
  readonly sessionId: string;
  /** The scope of the conversation of which this one is a copy, on the same model: it begins with the same words. */
  readonly inherited?: string | undefined;
  /**
   * What an application says its conversation is, beyond one session. `generation` counts its resets, and those alone:
   * a summary is no reset. Undefined where the count could not be read.
   */
  readonly declared?:
    | { readonly source: string; readonly key: string; readonly generation: number | undefined }
    | undefined;
  /** A conversation of its own that began as a copy of another: what that one declared is not its own. */
  readonly isFork?: boolean;
  /** False where nothing of it is stored: it may be gone tomorrow, and another may declare the same. Default true. */
  readonly isStored?: boolean;
}

const scopeOf = (kind: "declared" | "session", parts: readonly unknown[]): string => {
  // As JSON, so that no two lists of parts read the same.
  const digest = createHash("sha256").update(JSON.stringify([kind, ...parts]));
  return `tk_${digest.digest("hex").slice(0, 24)}`;
};

/** The scope a conversation's requests belong to: the inherited one, else the declared one, else the session's own. Pure. */
export function cacheScope({
  sessionId,
  inherited,
  declared,
  isFork = false,
  isStored = true,
}: CacheConversation): string {
  if (inherited !== undefined && inherited !== "") return inherited;
  const isSure = declared !== undefined && declared.key !== "" && declared.generation !== undefined;
  if (isSure && !isFork && isStored) return scopeOf("declared", [declared.source, declared.key, declared.generation]);
  return scopeOf("session", [sessionId]);
}
