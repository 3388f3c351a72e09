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
  extendLease,
  freeLease,
  grantLease,
  isGrantOf,
  isHeld,
  leaseView,
  predecessorsOf,
  serverBootId,
} from "./lease-rows.ts";
import type { HeldLeaseRow, LeaseRow } from "./lease-rows.ts";
import { patience } from "./server.ts";
import type { RunnerVouching } from "./runner-vouching.ts";
import type { Server } from "./server.ts";
import type { SessionImage } from "./session-image.ts";
import type { SessionWrites } from "./session-writes.ts";
import { handOver, settleCrashed, takeInput } from "./settlement.ts";
import type { PostgresSpool } from "./postgres-spool.ts";
import type { SpoolReplay } from "./spool-replay.ts";
import { storeError } from "./store-failure.ts";
import { openTurn, resumeTurn, startTurn, suspendedTurnOf } from "./turn-rows.ts";

type Refusal = Exclude<AcquireResult, { kind: "granted" }>;
type Admission =
  | { readonly kind: "free"; readonly hasQueue: boolean; readonly input?: PendingInput }
  | { readonly kind: "resumes"; readonly turn: SuspendedTurn }
  | Refusal;

function standsAsJudged(row: LeaseRow | undefined, reclaim: AcquireRequest["reclaim"]): boolean {
  if (!reclaim || !isGrantOf(row, reclaim)) return false;
  return reclaim.renewCount === undefined || reclaim.renewCount === row.renew_count;
}

/** Every refusal comes from here, before anything is changed but the head's claim period. */
function admit(image: SessionImage, request: AcquireRequest): Admission {
  const lease = image.leaseView;
  if (lease && lease.standing !== "expired" && !standsAsJudged(image.loadedLease, request.reclaim))
    return { kind: "held", lease };
  const suspended = suspendedTurnOf(image);
  if (suspended) {
    return { kind: mayResume(suspended, request.begin) ? "resumes" : "suspended", turn: suspended };
  }
  const queue = queueOf(image, request.begin?.runnerId);
  if (!request.begin) {
    const waiter = queue.length > 0 ? firstWaiter(queue, image.now) : undefined;
    if (!waiter) return { kind: "free", hasQueue: queue.length > 0 };
    wakeInput(image, waiter);
    return { kind: "behind", head: waiter.input };
  }
  const answer = claim(queue, image.now, request.begin.runnerId);
  if (answer.kind === "nothing-to-run") return { kind: "nothing-to-run" };
  if (answer.kind === "take") return { kind: "free", hasQueue: true, input: answer.input };
  wakeInput(image, answer.waiter);
  return { kind: "behind", head: answer.waiter.input };
}

/**
 * The holder asks again after a failure that left open whether it had been granted. Its ttl counts from now, as the
 * repeater counts: else it would believe too long (LEASE-3).
 */
function repeatGrant(image: SessionImage, request: AcquireRequest, row: HeldLeaseRow): AcquireResult {
  const { sessionId, holder, ttlMs, begin } = request;
  const resumed = begin ? resumedInPlaceOf(image, begin.turnId) : undefined;
  const { input } = begin ? firstInput(image, resumed?.turnId ?? begin.turnId) : {};
  if (begin && !input)
    throw storeError(
      "STORE_CONTRACT",
      `Holder ${holder.holderId} already holds session ${sessionId} without turn ${begin.turnId}.`,
    );
  extendLease(image, row, ttlMs);
  const predecessors = predecessorsOf(row);
  return {
    kind: "granted",
    fencingToken: row.fencing_token,
    revision: image.session?.revision ?? 0,
    ...(predecessors ? { predecessors } : {}),
    ...(input ? { input } : {}),
    ...(resumed ? { resumed } : {}),
  };
}

/** A running turn that asked something has been suspended: where it is another than the wanted, a grant resumed it. */
function resumedInPlaceOf(image: SessionImage, wantedTurnId: string): RunningTurn | undefined {
  const row = image.openTurn;
  const turn = row && openTurn(image.sessionId, row);
  return turn?.state === "running" && turn.approvals && turn.turnId !== wantedTurnId ? turn : undefined;
}

/** What the turn took first: nobody overtakes, so it is the oldest that it holds. */
function firstInput(image: SessionImage, turnId: string): { readonly input?: TakenInput } {
  const own = takenBy(image, turnId).filter(wantsTurn);
  const [input] = own.toSorted((left, right) => left.seq - right.seq);
  return input ? { input } : {};
}

function acquire(image: SessionImage, request: AcquireRequest, replay: SpoolReplay): AcquireResult {
  const { sessionId, holder, ttlMs, begin } = request;
  const row = image.loadedLease;
  if (isHeld(row) && row.holder_id === holder.holderId) return repeatGrant(image, request, row);
  const admission = admit(image, request);
  if (admission.kind !== "free" && admission.kind !== "resumes") return admission;
  const begun = begin && admission.kind === "free" ? image.turn(begin.turnId) : undefined;
  // Asked again after an answer that was lost: the turn was begun, and ended by somebody else since.
  if (begun?.holder_id === holder.holderId) return { kind: "nothing-to-run" };
  if (begin && begun)
    throw storeError("STORE_CONTRACT", `Turn ${begin.turnId} of session ${sessionId} has begun before.`, begin);

  replay.absorb(image);
  settleCrashed(image);
  const predecessors = predecessorsOf(image.lease);
  const fencingToken = grantLease(image, holder, ttlMs);
  if (admission.kind === "resumes" || admission.hasQueue) forgetWakeUps(image);
  const granted = {
    kind: "granted",
    fencingToken,
    revision: image.session?.revision ?? 0,
    ...(predecessors ? { predecessors } : {}),
  } as const;
  const open = image.openTurn;
  if (admission.kind === "resumes" && open) {
    const resumed = resumeTurn(image, open, fencingToken, holder);
    return { ...granted, resumed, ...firstInput(image, resumed.turnId) };
  }
  if (!begin || admission.kind === "resumes" || !admission.input) return granted;
  startTurn(image, { turnId: begin.turnId, fencingToken, holder });
  return { ...granted, input: takeInput(image, admission.input, begin.turnId) };
}

function release(image: SessionImage, grant: Grant, replay: SpoolReplay): ReleaseResult {
  if (!isGrantOf(image.lease, grant)) return { kind: "stale" };
  // No turn runs without a lease: what the holder left is settled as after a crash.
  replay.absorb(image);
  settleCrashed(image);
  freeLease(image);
  return { kind: "released", ...handOver(image) };
}

export class PostgresLeases implements LeaseStore {
  readonly #server: Server;
  readonly #writes: SessionWrites;
  readonly #spool: PostgresSpool;
  readonly #vouching: RunnerVouching;

  constructor(server: Server, writes: SessionWrites, spool: PostgresSpool, vouching: RunnerVouching) {
    this.#server = server;
    this.#writes = writes;
    this.#spool = spool;
    this.#vouching = vouching;
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const result = await this.#acquire(request);
    if (result.kind === "granted" && result.input) this.#vouching.end(request.sessionId, result.input.inputId);
    return result;
  }

  #acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { sessionId, begin } = request;
    return this.#spool.replaying(sessionId, (replay) =>
      this.#writes.write({
        sessionId,
        attempt: `acquire session ${sessionId}`,
        kind: "ordinary",
        isRepeatable: true,
        reading: replay.reading({ turnIds: begin ? [begin.turnId] : [] }),
        decide: replay.deciding((image) => acquire(image, request, replay)),
      }),
    );
  }

  /** Not behind the session's other calls: a renewal waits for nobody, and moves no version. */
  renew(grant: Grant, ttlMs: number): Promise<RenewResult> {
    const attempt = `renew the lease of session ${grant.sessionId}`;
    return this.#server.patiently(attempt, patience.renewal, async (): Promise<RenewResult> => {
      const [row] = await this.#server.once<{ renewed: boolean }>(
        `SELECT ${this.#server.schema}.renew_lease($1, $2, $3, $4) AS renewed`,
        [grant.sessionId, grant.holderId, grant.fencingToken, ttlMs],
      );
      if (row?.renewed) return { kind: "renewed" };
      const lease = await this.#look(grant.sessionId);
      return lease ? { kind: "lost", lease } : { kind: "lost" };
    });
  }

  release(grant: Grant): Promise<ReleaseResult> {
    const { sessionId } = grant;
    return this.#spool.replaying(sessionId, (replay) =>
      this.#writes.write({
        sessionId,
        attempt: `release session ${sessionId}`,
        kind: "ordinary",
        reading: replay.reading({}),
        decide: replay.deciding((image) => release(image, grant, replay)),
      }),
    );
  }

  read(sessionId: string): Promise<LeaseView | undefined> {
    const attempt = `read the lease of session ${sessionId}`;
    return this.#server.patiently(attempt, patience.ordinary, () => this.#look(sessionId));
  }

  async #look(sessionId: string): Promise<LeaseView | undefined> {
    const { schema } = this.#server;
    const [row] = await this.#server.once<{ clock_ms: number; lease: LeaseRow }>(
      `SELECT ${schema}.clock_ms(), row_to_json(lease) AS lease FROM ${schema}.lease WHERE session_id = $1`,
      [sessionId],
    );
    return row && leaseView(sessionId, row.lease, { bootId: serverBootId, bootMs: row.clock_ms });
  }
}
