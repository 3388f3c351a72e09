/** Where the bearer token of a provider's requests comes from, when it is more than a key that stands in a variable. */

export interface CredentialSource {
  /** What to send now; made anew first where it is about to expire. */
  token(): Promise<string>;
  /** After a 401: what to send in the place of `refused`. Nothing where nothing better is to be had. */
  replacement(refused: string): Promise<string | undefined>;
  /** Tokens that are or were in use: no message may hold them. */
  readonly secrets: readonly string[];
}

/**
 * What keeps the processes that share a credential apart. It must be free when its holder dies. `busy`: somebody else
 * had it for the whole of the wait, and the work was not begun. `fileLock` of the SQLite store is one.
 */
export interface CredentialLock {
  hold<Value>(
    work: () => Promise<Value>,
  ): Promise<{ readonly kind: "held"; readonly value: Value } | { readonly kind: "busy" }>;
}
