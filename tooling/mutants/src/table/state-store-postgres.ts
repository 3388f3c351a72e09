import { mutationsOf } from "../mutation.ts";
import type { Mutation } from "../mutation.ts";

// The suite without crashes: opening a store before every call takes a server longer than a mutation may.
const plain = "the PostgreSQL store keeps every rule of the contract";
const elsewhere = "inputs whose runner is on another host";
const schema = "postgres-migrations/0001-durable-turns.sql";

export const stateStorePostgresMutations: readonly Mutation[] = mutationsOf("state-store-postgres", [
  {
    id: "grant-stands-by-holder-alone",
    file: "lease-rows",
    find: "return isHeld(row) && row.holder_id === grant.holderId && row.fencing_token === grant.fencingToken;",
    replace: "return isHeld(row) && row.holder_id === grant.holderId;",
    guards: "APPEND-1",
    tests: ["conformance"],
    only: `${plain} APPEND-1c:`,
  },
  {
    id: "grant-stands-by-token-alone",
    file: "lease-rows",
    find: "return isHeld(row) && row.holder_id === grant.holderId && row.fencing_token === grant.fencingToken;",
    replace: "return isHeld(row) && row.fencing_token === grant.fencingToken;",
    guards: "APPEND-1",
    tests: ["conformance"],
    only: `${plain} APPEND-1c:`,
  },
  {
    id: "token-not-raised",
    file: "lease-rows",
    find: "const fencingToken = (image.lease?.fencing_token ?? 0) + 1;",
    replace: "const fencingToken = image.lease?.fencing_token ?? 1;",
    guards: "LEASE-2",
    tests: ["conformance"],
    only: `${plain} LEASE-2:`,
  },
  {
    id: "lost-answer-not-asked-for",
    file: "session-writes",
    find: "if (image.isKept || this.sent.size === 0) return undefined;",
    replace: 'if (image.sessionId !== "") return undefined;',
    guards: "APPEND-3",
    tests: ["lost-connection"],
    only: "APPEND-3:",
  },
  {
    id: "gone-runner-waited-for",
    file: "input-rows",
    find: "(row.runner_is_gone !== true || runner.runnerId === askerId)",
    replace: "runner.runnerId !== undefined",
    guards: "7.10",
    tests: ["runner-liveness"],
    only: `${elsewhere} what a process that is gone`,
  },
  {
    id: "asking-runner-taken-for-gone",
    file: "input-rows",
    find: "(row.runner_is_gone !== true || runner.runnerId === askerId)",
    replace: "row.runner_is_gone !== true",
    guards: "7.10",
    tests: ["runner-liveness"],
    only: `${elsewhere} it claims its own`,
  },
  {
    id: "living-runner-not-vouched-for",
    file: "runner-vouching",
    find: "this.#cancel ??= this.#later();",
    replace: "this.#cancel ??= undefined;",
    guards: "7.10",
    tests: ["runner-liveness"],
    only: `${elsewhere} a process that says it lives`,
  },
  {
    id: "runner-outlived-by-an-older-image",
    file: schema,
    find: "THEN greatest(excluded.runner_until_clock_ms, input.runner_until_clock_ms) END,",
    replace: "THEN excluded.runner_until_clock_ms END,",
    guards: "7.10",
    tests: ["runner-liveness"],
    only: `${elsewhere} a writer that had read`,
  },
  {
    id: "head-woken-without-a-wake-up",
    file: "input-rows",
    find: "image.putInput({ ...row, woken_clock_ms: image.now.bootMs });\n  image.ring();",
    replace: "image.putInput({ ...row, woken_clock_ms: image.now.bootMs });",
    guards: "7.10",
    tests: ["wake-ups"],
    only: "wake-ups reach another process",
  },
  {
    id: "write-that-fails-for-its-wake-up",
    file: "session-writes",
    find: "if (codeOf(error.cause) === limitExceeded && !run.isSilent) {",
    replace: 'if (codeOf(error.cause) === "" && !run.isSilent) {',
    guards: "7.10",
    tests: ["wake-ups"],
    only: "wake-ups that the server has no room for",
  },
  {
    id: "standby-believed",
    file: schema,
    find: "IF pg_is_in_recovery() THEN",
    replace: "IF false THEN",
    guards: "APPEND-3",
    tests: ["failover"],
    only: "a failover to a standby APPEND-3:",
  },
  {
    id: "renewal-not-durable",
    file: schema,
    find: "RETURNS boolean LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$\n",
    replace:
      "RETURNS boolean LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$\n  SELECT set_config('synchronous_commit', 'off', true);\n",
    guards: "LEASE-3",
    tests: ["server-restart"],
    only: "a server that is killed LEASE-3:",
  },
]);
