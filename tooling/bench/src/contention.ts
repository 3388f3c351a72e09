/** How processes compete for one session. */
export type Mechanism =
  | "ours"
  | "ping"
  | "durable-ping"
  | "socket-end"
  | "sqlite-poll"
  | "proper-lockfile"
  | "redlock"
  // On one PostgreSQL:
  | "ours-on-server"
  | "ours-polled"
  | "notify"
  | "advisory-lock"
  | "server-poll"
  | "graphile-worker"
  | "pg-boss";

export interface ContenderSettings {
  readonly mechanism: Mechanism;
  readonly folder: string;
  readonly name: string;
  /** Of `sqlite-poll` and `server-poll`. */
  readonly pollMs?: number;
  /** Of `proper-lockfile`. */
  readonly retries?: Readonly<Record<string, number>>;
  /** Of `redlock`. */
  readonly redisSocket?: string;
  /** Of those on PostgreSQL. */
  readonly serverUrl?: string;
}

export interface Contention {
  acquire(isFree: boolean): Promise<void>;
  release(): Promise<void>;
  close(): Promise<void>;
}

export const sessionId = "contended";
export const ttlMs = 300_000;
