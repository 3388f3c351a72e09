import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import type { StateStore } from "@turnkeeper/state-store";
import type { ConformanceHarness } from "@turnkeeper/state-store/testing";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import type { PostgresStore } from "@turnkeeper/state-store-postgres";
import pg from "pg";
import { afterAll, inject } from "vitest";

/** What a test that needs a server says where there is none: `test.skipIf(noServer)`. */
export const noServer: string | false =
  inject("postgresUrl") === "" && "This machine has no PostgreSQL: install its server, or set PG_BIN.";

export const serverUrl: string = inject("postgresUrl");

let schemaCount = 0;

/** A schema that no other test has. */
export function freshSchema(): string {
  return `test_${process.pid}_${process.env.VITEST_POOL_ID ?? ""}_${++schemaCount}`;
}

/** The schema in which this file's harnesses play one after the other; it is made once, and emptied for each store. */
let played: Promise<Stage> | undefined;

/** What all harnesses of a file have in common: a connection costs a server more than most cases do. */
interface Stage {
  readonly admin: pg.Client;
  readonly schema: string;
}

async function setStage(): Promise<Stage> {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  return { admin, schema: await makeClockedSchema(admin) };
}

afterAll(async () => {
  const stage = await played;
  await stage?.admin.end();
});

/** A schema whose server tells the time that its table `virtual_clock` says. */
export async function makeClockedSchema(admin: pg.Client): Promise<string> {
  const schema = freshSchema();
  const store = await openPostgresStore(serverUrl, { host: virtualHost() }, { schema });
  await store.close();
  await admin.query(`
    CREATE TABLE "${schema}".virtual_clock (clock_ms double precision, wall_ms double precision);
    INSERT INTO "${schema}".virtual_clock VALUES (0, 0);
    CREATE OR REPLACE FUNCTION "${schema}".clock_ms() RETURNS double precision LANGUAGE sql VOLATILE AS
      'SELECT clock_ms FROM "${schema}".virtual_clock';
    CREATE OR REPLACE FUNCTION "${schema}".wall_ms() RETURNS double precision LANGUAGE sql VOLATILE AS
      'SELECT wall_ms FROM "${schema}".virtual_clock'`);
  return schema;
}

/** The cases know no runner that is gone without a word: that is of several hosts, and has its own tests. */
const endlessMs = 1e12;

export interface PostgresHarness extends ConformanceHarness {
  readonly host: VirtualHost;
  close(): Promise<void>;
}

/**
 * The PostgreSQL store under the conformance cases. The server's clock is the store's, so the two functions by which it
 * tells the time are replaced in the test's schema, and told before each call what the virtual host shows.
 */
export async function postgresHarness(parent: string): Promise<PostgresHarness> {
  const host = virtualHost();
  const { admin, schema } = await (played ??= setStage());
  const spoolParent = mkdtempSync(join(parent, "spool-"));
  const opened: PostgresStore[] = [];
  let spoolFolder = "";
  let spoolCount = 0;
  let told = "";

  const tellTime = async (): Promise<void> => {
    const { clock } = host;
    const now = `${clock.bootMs()},${clock.wallMs()}`;
    if (now === told) return;
    told = now;
    await admin.query({
      text: `UPDATE "${schema}".virtual_clock SET clock_ms = $1, wall_ms = $2`,
      values: [clock.bootMs(), clock.wallMs()],
    });
  };
  const inTime = <Port extends object>(port: Port): Port =>
    new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        return async (...args: unknown[]): Promise<unknown> => {
          await tellTime();
          return Reflect.apply(member, target, args) as unknown;
        };
      },
    });
  const open = async (): Promise<StateStore> => {
    const options = { schema, spoolFolder, connectionsMax: 5, runnerTtlMs: endlessMs };
    const store = await openPostgresStore(serverUrl, { host }, options);
    opened.push(store);
    return {
      sessions: inTime(store.sessions),
      leases: inTime(store.leases),
      transcript: inTime(store.transcript),
      inbox: inTime(store.inbox),
      turns: inTime(store.turns),
      spool: store.spool,
      check: () => store.check(),
      close: () => store.close(),
    };
  };

  return {
    host,
    open: async () => {
      spoolFolder = join(spoolParent, `${++spoolCount}`);
      told = "";
      await admin.query(`
        DELETE FROM "${schema}".session;
        DELETE FROM "${schema}".lease;
        ALTER SEQUENCE "${schema}".input_seq RESTART`);
      return await open();
    },
    // The crashed process's connections go with it; what it had not been answered, the server may still do.
    reopen: async () => {
      const crashed = opened.pop();
      const store = await open();
      await crashed?.close();
      return store;
    },
    close: async () => {
      for (const store of opened) await store.close();
    },
  };
}
