import { mutationsOf } from "../mutation.ts";
import type { Mutation } from "../mutation.ts";

// The suite without crashes: opening a store before every call takes a server longer than a mutation may.
const plain = "the PostgreSQL store keeps every rule of the contract";

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
]);
