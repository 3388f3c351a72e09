import { claim, firstWaiter, mayResume, wantsTurn } from "@turnkeeper/state-store";
import type {
  AcquireRequest,
  AcquireResult,
  Grant,
  LeaseStore,
  LeaseView,
  PendingInput,
  ReleaseResult,
  RenewResult,
  RunningTurn,
  SuspendedTurn,
  TakenInput,
} from "@turnkeeper/state-store";
import { forgetWakeUps, queueOf, takenBy, wakeInput } from "./input-rows.ts";
import {
  findLease,
  findLeaseView,
  freeLease,
  grantLease,
  isGrantOf,
  isHeld,
  leaseView,
  predecessorsOf,
  renewLease,
} from "./lease-rows.ts";
import type { LeaseRow } from "./lease-rows.ts";
import { findSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { handOver, settleCrashed, takeInput } from "./settlement.ts";
import type { SpoolFolder } from "./spool-folder.ts";
import { SpoolReplay } from "./spool-replay.ts";
import { storeError } from "./store-failure.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Transaction } from "./transaction.ts";
import { findOpenTurn, findSuspendedTurn, findTurn, openTurn, resumeTurn, startTurn } from "./turn-rows.ts";

type Refusal = Exclude<AcquireResult, { kind: "granted" }>;
type Admission =
  | { readonly kind: "free"; readonly hasQueue: boolean; readonly input?: PendingInput }
  | { readonly kind: "resumes"; readonly turn: SuspendedTurn }
  | Refusal;

function standsAsJudged(row: LeaseRow, reclaim: AcquireRequest["reclaim"]): boolean {
  if (!reclaim || !isGrantOf(row, reclaim)) return false;
  return reclaim.renewCount === undefined || reclaim.renewCount === row.renew_count;
}

/** Every refusal comes from here, before anything is changed but the head's claim period. */
function admit(
  tx: Transaction,
  request: AcquireRequest,
  row: LeaseRow | undefined,
  session: SessionRow | undefined,
): Admission {
  const lease = leaseView(tx, request.sessionId, row);
  if (row && lease && lease.standing !== "expired" && !standsAsJudged(row, request.reclaim))
    return { kind: "held", lease };
  const suspended = session && findSuspendedTurn(tx, session);
  if (suspended) {
    return { kind: mayResume(suspended, request.begin) ? "resumes" : "suspended", turn: suspended };
  }
  const queue = session ? queueOf(tx, session) : [];
  if (!request.begin) {
    const waiter = queue.length > 0 ? firstWaiter(queue, tx.now) : undefined;
    if (!session || !waiter) return { kind: "free", hasQueue: queue.length > 0 };
    wakeInput(tx, session, waiter);
    return { kind: "behind", head: waiter.input };
  }
  const answer = claim(queue, tx.now, request.begin.runnerId);
  if (answer.kind === "nothing-to-run" || !session) return { kind: "nothing-to-run" };
  if (answer.kind === "take") return { kind: "free", hasQueue: true, input: answer.input };
  wakeInput(tx, session, answer.waiter);
  return { kind: "behind", head: answer.waiter.input };
}

/**
 * The holder asks again after a failure that left open whether it had been granted. Its ttl counts from now, as the
 * repeater counts: else it would believe too long (LEASE-3).
 */
function repeatGrant(
  tx: Transaction,
  request: AcquireRequest,
  row: LeaseRow,
  session: SessionRow | undefined,
): AcquireResult {
  const { sessionId, holder, ttlMs, begin } = request;
  const fencingToken = row.fencing_token;
  const resumed = session && begin ? resumedInPlaceOf(tx, session, begin.turnId) : undefined;
  const { input } = session && begin ? firstInput(tx, session, resumed?.turnId ?? begin.turnId) : {};
  if (begin && !input)
    throw storeError(
      "STORE_CONTRACT",
      `Holder ${holder.holderId} already holds session ${sessionId} without turn ${begin.turnId}.`,
    );
  renewLease(tx, { sessionId, holderId: holder.holderId, fencingToken }, ttlMs);
  const predecessors = predecessorsOf(row);
  return {
    kind: "granted",
    fencingToken,
    revision: session?.revision ?? 0,
    ...(predecessors ? { predecessors } : {}),
    ...(input ? { input } : {}),
    ...(resumed ? { resumed } : {}),
  };
}

/** A running turn that asked something has been suspended: where it is another than the wanted, a grant resumed it. */
function resumedInPlaceOf(tx: Transaction, session: SessionRow, wantedTurnId: string): RunningTurn | undefined {
  const row = findOpenTurn(tx, session);
  const turn = row && openTurn(session.session_id, row);
  return turn?.state === "running" && turn.approvals && turn.turnId !== wantedTurnId ? turn : undefined;
}

/** What the turn took first: nobody overtakes, so it is the oldest that it holds. */
function firstInput(tx: Transaction, session: SessionRow, turnId: string): { readonly input?: TakenInput } {
  const own = takenBy(tx, session, turnId).filter(wantsTurn);
  const [input] = own.toSorted((left, right) => left.seq - right.seq);
  return input ? { input } : {};
}

function acquire(tx: Transaction, request: AcquireRequest, replay: SpoolReplay): AcquireResult {
  const { sessionId, holder, ttlMs, begin } = request;
  const row = findLease(tx, sessionId);
  const session = findSession(tx, sessionId);
  if (isHeld(row) && row.holder_id === holder.holderId) return repeatGrant(tx, request, row, session);
  const admission = admit(tx, request, row, session);
  if (admission.kind !== "free" && admission.kind !== "resumes") return admission;
  const begun = session && begin && admission.kind === "free" ? findTurn(tx, session, begin.turnId) : undefined;
  // Asked again after an answer that was lost: the turn was begun, and ended by somebody else since.
  if (begun?.holder_id === holder.holderId) return { kind: "nothing-to-run" };
  if (begin && begun)
    throw storeError("STORE_CONTRACT", `Turn ${begin.turnId} of session ${sessionId} has begun before.`, begin);

  if (session) replay.absorb(tx, session);
  const settled = session && settleCrashed(tx, session);
  // Read anew: the replay may have forgotten some, and the settlement has added one.
  const predecessors = settled || row?.predecessors ? predecessorsOf(findLease(tx, sessionId)) : undefined;
  const fencingToken = grantLease(tx, sessionId, row, holder, ttlMs);
  if (session && (admission.kind === "resumes" || admission.hasQueue)) forgetWakeUps(tx, session);
  const granted = {
    kind: "granted",
    fencingToken,
    revision: session?.revision ?? 0,
    ...(predecessors ? { predecessors } : {}),
  } as const;
  if (session && admission.kind === "resumes") {
    const resumed = resumeTurn(tx, session, admission.turn, fencingToken, holder);
    return { ...granted, resumed, ...firstInput(tx, session, resumed.turnId) };
  }
  if (!begin || admission.kind === "resumes" || !admission.input || !session) return granted;
  startTurn(tx, session, { turnId: begin.turnId, fencingToken, holder });
  return { ...granted, input: takeInput(tx, session, admission.input, begin.turnId) };
}

export class SqliteLeases implements LeaseStore {
  readonly #handle: StoreHandle;
  readonly #spool: SpoolFolder;

  constructor(handle: StoreHandle, spool: SpoolFolder) {
    this.#handle = handle;
    this.#spool = spool;
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const kind = request.begin ? "ordinary" : "lease";
    const replay = new SpoolReplay(this.#spool);
    const attempt = `acquire session ${request.sessionId}`;
    const result = await this.#handle.write(kind, attempt, (tx) => acquire(tx, request, replay));
    replay.finish();
    return result;
  }

  renew(grant: Grant, ttlMs: number): Promise<RenewResult> {
    return this.#handle.write("renewal", `renew the lease of session ${grant.sessionId}`, (tx): RenewResult => {
      if (renewLease(tx, grant, ttlMs)) return { kind: "renewed" };
      const lease = findLeaseView(tx, grant.sessionId);
      return lease ? { kind: "lost", lease } : { kind: "lost" };
    });
  }

  async release(grant: Grant): Promise<ReleaseResult> {
    const replay = new SpoolReplay(this.#spool);
    const result = await this.#handle.write("lease", `release session ${grant.sessionId}`, (tx): ReleaseResult => {
      if (!freeLease(tx, grant)) return { kind: "stale" };
      const session = findSession(tx, grant.sessionId);
      // No turn runs without a lease: what the holder left is settled as after a crash.
      if (session) {
        replay.absorb(tx, session);
        settleCrashed(tx, session);
      }
      return { kind: "released", ...handOver(tx, session) };
    });
    replay.finish();
    return result;
  }

  read(sessionId: string): Promise<LeaseView | undefined> {
    return this.#handle.read(`read the lease of session ${sessionId}`, (tx) => findLeaseView(tx, sessionId));
  }
}
