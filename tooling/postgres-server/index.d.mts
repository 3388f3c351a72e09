export interface PostgresServer {
  /** `postgres://USER@127.0.0.1:PORT/postgres`, over TCP. */
  readonly url: string;
  readonly port: number;
  /** Ends every process of the server with SIGKILL, as a power cut would. */
  kill(): Promise<void>;
  /** Ends it as an operator does who does not wait for its clients. */
  stop(): Promise<void>;
  /** Starts it again on its data, after `kill` or `stop`. */
  start(): Promise<void>;
  /** A hot standby beside it, which follows asynchronously and can be promoted. */
  startStandby(): Promise<PostgresServer>;
  /** Ends it and removes its data; closing twice is safe. */
  close(): Promise<void>;
}

export interface PostgresServerOptions {
  /** Whether commits wait for the disk. Default false: the tests of this repository kill the server, not the machine. */
  readonly fsync?: boolean;
  /** The server's certificate and its key, as PEM: it then takes connections with TLS, and others too. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** Who may come in how, as `pg_hba.conf` has it. Default: everybody of this machine, without a password. */
  readonly admission?: string;
  /** More settings, as `postgresql.conf` names them. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** The folder of the server's binaries: `PG_BIN`, the newest of the system's, or one on the PATH; absent where there is none. */
export declare function findPostgres(): string | undefined;

/** Makes a database cluster in a folder of its own and starts a server on it. Throws where `findPostgres` finds none. */
export declare function startPostgres(options?: PostgresServerOptions): Promise<PostgresServer>;
