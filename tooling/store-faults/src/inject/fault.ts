/** One way in which a system call on the store's files can go wrong. */
export interface Fault {
  readonly name: string;
  readonly calls: string;
  /** As strace takes it: https://man7.org/linux/man-pages/man1/strace.1.html, Tampering. */
  readonly action: string;
  /** Every call from there on, not one alone. */
  readonly isLasting?: true;
  /** SQLite may go on believing in a lock that could not be given back; calls then wait as long as they may. */
  readonly mayWait?: true;
  /** A spool that cannot be taken refuses nobody the session, and then comes late. */
  readonly mayBeLate?: true;
  /** A run makes few of these calls, and how many is up to chance: so many are added that it comes to the one meant. */
  readonly isOfSpool?: true;
}

export const faults: readonly Fault[] = [
  { name: "write-eio", calls: "pwrite64", action: "error=EIO" },
  { name: "write-enospc", calls: "pwrite64", action: "error=ENOSPC" },
  { name: "write-kill", calls: "pwrite64", action: "signal=SIGKILL" },
  { name: "write-eio-lasting", calls: "pwrite64", action: "error=EIO", isLasting: true },
  { name: "write-enospc-lasting", calls: "pwrite64", action: "error=ENOSPC", isLasting: true },
  { name: "sync-eio", calls: "fdatasync,fsync", action: "error=EIO" },
  { name: "sync-kill", calls: "fdatasync,fsync", action: "signal=SIGKILL" },
  { name: "cut-eio", calls: "ftruncate", action: "error=EIO" },
  { name: "remove-eio", calls: "unlink", action: "error=EIO" },
  { name: "remove-kill", calls: "unlink", action: "signal=SIGKILL" },
  // Of the spool alone: SQLite writes at positions, and moves nothing.
  { name: "spool-write-eio", calls: "write", action: "error=EIO", isOfSpool: true },
  { name: "spool-write-enospc", calls: "write", action: "error=ENOSPC", isOfSpool: true },
  { name: "spool-write-kill", calls: "write", action: "signal=SIGKILL", isOfSpool: true },
  { name: "spool-claim-eio", calls: "rename", action: "error=EIO", isOfSpool: true, mayBeLate: true },
  { name: "spool-claim-kill", calls: "rename", action: "signal=SIGKILL", isOfSpool: true },
  { name: "lock-enolck", calls: "fcntl", action: "error=ENOLCK", mayWait: true },
  { name: "read-eio", calls: "pread64", action: "error=EIO" },
];

/** A disk that says it has written what it has not: nothing survives that, so it must be found out. */
export const lyingDisk: Fault = { name: "write-lie", calls: "pwrite64", action: "retval=4096", isLasting: true };
