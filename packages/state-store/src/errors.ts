/** What a store may reject with. Races have values for answers; these are broken promises. */
export type StoreErrorCode =
  /** Cannot be opened or reached: no such folder, no permission, not a database. */
  | "STORE_UNAVAILABLE"
  /** Healthy, but another process kept the write lock for the whole patience of this call. Nothing was written. */
  | "STORE_BUSY"
  | "STORE_CLOSED"
  /** Written by a newer version than this one: upgrade, nothing was touched. */
  | "STORE_NEWER"
  /** Structural damage, a digest that does not match, a row that makes no sense. */
  | "STORE_CORRUPT"
  /** The file behind the path is not the one that was opened. */
  | "STORE_REPLACED"
  /** The file, or what belongs to it, was deleted while it was open. */
  | "STORE_DELETED"
  /** The file, or what belongs to it, was cut short while it was open. */
  | "STORE_TRUNCATED"
  /** This process's locks on the file are gone: something in it opened and closed the file. */
  | "STORE_UNLOCKED"
  | "STORE_READONLY"
  | "STORE_FULL"
  /** An I/O error; after one on commit the write is indeterminate: read back or repeat. */
  | "STORE_IO"
  /** A second copy of the package opened a path that is already open in this process. */
  | "STORE_DUPLICATE"
  /** A known entry key with other content. */
  | "ENTRY_CONFLICT"
  /** The caller broke the contract (an unknown turn, an input its turn never took): a bug above the store. */
  | "STORE_CONTRACT";
