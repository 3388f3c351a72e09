/** Who holds or waits for a turn, told precisely enough that another process can find out whether it still lives. */

/** One process instance. A bare pid proves nothing: containers reuse 1 and 7, and pids come round again. */
export interface ProcessIdentity {
  /** Made once when the process loads; a restart in place or a fork has another. */
  readonly instanceId: string;
  readonly host: string;
  /** Names the boot of the kernel the process runs on; empty where the platform does not tell. */
  readonly bootId: string;
  readonly pid: number;
  /** Kernel start time of the pid (field 22 of /proc/PID/stat), which tells two users of one pid apart. */
  readonly pidStart?: string;
  /** The pid namespace in which `pid` means anything. */
  readonly pidNamespace?: string;
  /** The unix socket on which this instance answers "is this lease or runner active here?" and takes wake-ups. */
  readonly socketPath?: string;
}

/** The owner of one grant: a fresh `holderId` (ULID) for every grant, never reused. */
export interface Holder extends ProcessIdentity {
  readonly holderId: string;
}

/** The one who will run an input: one per dispatcher, so several agents of one process can be told apart. */
export interface Runner extends ProcessIdentity {
  readonly runnerId: string;
}

/** Names one grant of one session. A write names the grant it is made under; a take names the grant it replaces. */
export interface Grant {
  readonly sessionId: string;
  readonly holderId: string;
  /** The fencing token: the number of the grant, growing with each grant of the session (LEASE-2). */
  readonly fencingToken: number;
}
