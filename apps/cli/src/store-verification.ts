/** What `sessions verify` finds: the rules of the contract, what is derived, and whose leases nobody lives for. */
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { beginVerification } from "@turnkeeper/state-store";
import type { LeaseView, StateStore, StoreErrorCode, Violation } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { oneLine } from "./one-line.ts";
import { pulseOf } from "@turnkeeper/agent-core";
import { snapshotOf, wasCompacted } from "./snapshot.ts";
import { entriesOf } from "./transcript-windows.ts";

export interface Findings {
  readonly sessionCount: number;
  readonly violations: readonly Violation[];
  /** What was left by whoever is gone: no rule is broken, and the next turn puts it right. */
  readonly left: readonly { readonly session: string; readonly detail: string }[];
}

export async function* sessionIds(store: StateStore): AsyncGenerator<string> {
  let cursor: string | undefined;
  do {
    const page = await store.sessions.list({ limit: 200, ...(cursor === undefined ? {} : { cursor }) });
    for (const { sessionId } of page.sessions) yield sessionId;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** Damage that a read met, as a violation; anything else that goes wrong is no finding. */
function damageOf(error: unknown, session: string): Violation {
  if (!CodedError.is<StoreErrorCode>(error, "STORE_CORRUPT")) throw error;
  return { rule: "APPEND-3", session, detail: oneLine(error.message) };
}

/** A lease whose holder is gone, as a reader takes it. */
export async function leftLease(presence: ProcessPresence, lease: LeaseView): Promise<string | undefined> {
  const pulse = await pulseOf(presence, lease.holder);
  const why =
    pulse === "dead"
      ? "has died"
      : pulse === "leaked"
        ? "has forgotten it"
        : lease.standing === "expired"
          ? "let it run out"
          : undefined;
  const { pid, host } = lease.holder;
  return why && `the lease with fencing token ${lease.fencingToken} is of pid ${pid} on ${host}, which ${why}`;
}

/** Verifies a session window by window. Absent: there is none. */
async function verifyOne(
  store: StateStore,
  presence: ProcessPresence,
  sessionId: string,
  isFile: boolean,
): Promise<Omit<Findings, "sessionCount"> | undefined> {
  for (;;) {
    const snapshot = await snapshotOf(store, sessionId);
    if (!snapshot) return undefined;
    const { records, beforeSeq } = snapshot;
    const verification = beginVerification(records);
    for await (const entry of entriesOf(store, sessionId, { beforeSeq })) verification.entry(entry);
    // Entries that were archived while they were read are of two states.
    if (await wasCompacted(store, snapshot)) continue;
    const detail = records.lease && (await leftLease(presence, records.lease));
    // Of what is derived a file's store says more itself.
    const violations = verification.end().filter(({ rule }) => !isFile || rule !== "DERIVED");
    return { violations, left: detail === undefined ? [] : [{ session: sessionId, detail }] };
  }
}

async function isReadable(store: StateStore): Promise<boolean> {
  try {
    await store.sessions.list({ limit: 1 });
    return true;
  } catch (error) {
    if (CodedError.is<StoreErrorCode>(error)) return false;
    throw error;
  }
}

/** Steps of turns that the store does not know: no grant brings them back. */
async function strayViolations(store: StateStore, only: string | undefined): Promise<readonly Violation[]> {
  const violations: Violation[] = [];
  for (const { sessionId, turnIds, place } of await store.spool.waiting(only))
    for (const turnId of turnIds) {
      if (await store.turns.read(sessionId, turnId)) continue;
      const detail = `${place} has steps of turn ${turnId}, which this store does not know: they come back on the store that has it, or late, with a recovery of this one`;
      violations.push({ rule: "SPOOL-1", session: sessionId, detail });
    }
  return violations;
}

/** What SQLite says of the file: reading every row meets neither damaged indexes nor what is twice. */
async function structureViolations(path: string): Promise<readonly Violation[]> {
  const { checkStructure } = await import("@turnkeeper/state-store-sqlite");
  const { faults, indexFaults } = await checkStructure(path);
  const found = (rule: string, lines: readonly string[]): readonly Violation[] =>
    lines.map((line) => ({ rule, session: "", detail: oneLine(line) }));
  // Of the index one is enough: it is made anew as a whole.
  return [...found("APPEND-3", faults), ...found("DERIVED", indexFaults.slice(0, 1))];
}

async function derivedViolations(path: string, only: string | undefined): Promise<readonly Violation[]> {
  const { repairDerived } = await import("@turnkeeper/state-store-sqlite");
  const options = { isDryRun: true, ...(only === undefined ? {} : { sessionId: only }) };
  const faults = await repairDerived(path, { host: systemHost }, options);
  return faults.map(({ session = "", detail }) => ({ rule: "DERIVED", session, detail }));
}

/** Verifies the session, or all; undefined when the one that was named is not there. `path`: the store's file, if any. */
export async function verifyStore(
  deps: { readonly store: StateStore; readonly presence: ProcessPresence; readonly path?: string },
  only?: string,
): Promise<Findings | undefined> {
  const { store, presence, path } = deps;
  const violations: Violation[] = [];
  const left: Findings["left"][number][] = [];
  let sessionCount = 0;
  // Damage ends nothing but the session it was met in, unless the store refuses everything from then on.
  const guarded = async (session: string, act: () => Promise<void>): Promise<boolean> => {
    try {
      await act();
      return true;
    } catch (error) {
      violations.push(damageOf(error, session));
      return isReadable(store);
    }
  };
  const verify = (sessionId: string): Promise<boolean> =>
    guarded(sessionId, async () => {
      const found = await verifyOne(store, presence, sessionId, path !== undefined);
      if (!found) return;
      sessionCount++;
      violations.push(...found.violations);
      left.push(...found.left);
    });
  let isWhole = true;
  if (only === undefined)
    isWhole = await guarded("", async () => {
      for await (const sessionId of sessionIds(store)) if (!(await verify(sessionId))) break;
    });
  else isWhole = await verify(only);
  if (only !== undefined && sessionCount === 0 && violations.length === 0) return undefined;
  if (isWhole) await guarded(only ?? "", async () => void violations.push(...(await strayViolations(store, only))));
  if (isWhole && path !== undefined && (await isReadable(store)))
    await guarded(only ?? "", async () => void violations.push(...(await derivedViolations(path, only))));
  if (path !== undefined && only === undefined) violations.push(...(await structureViolations(path)));
  return { sessionCount, violations, left };
}
