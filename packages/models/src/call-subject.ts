/** What the package knows of the call that failed, beyond the error itself. */
export interface CallSubject {
  /** `provider/model`. */
  readonly id: string;
  /** Name of the environment variable that holds the key, and whether it was set. */
  readonly key?: { readonly name: string; readonly isSet: boolean };
  /** Its requests carry the token of a credential source, and no key. */
  readonly hasCredential?: boolean;
  /** Values that must not appear in any message. */
  readonly secrets: readonly string[];
  /** A model the embedder brought: errors of its own code are kept for its author. */
  readonly isForeign?: boolean;
  /** Host of the proxy that stands between. */
  readonly proxyHost?: string;
  /** How long a silence the transport bears, in milliseconds. */
  readonly idleTimeoutMs?: number;
}
