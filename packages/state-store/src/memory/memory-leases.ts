import { mayResume } from "../approval.ts";
import { wantsTurn } from "../child.ts";
import { claim, firstWaiter } from "../decisions.ts";
import type { Grant } from "../identity.ts";
import type { PendingInput, TakenInput } from "../inbox.ts";
import type { AcquireRequest, AcquireResult, LeaseStore, LeaseView, ReleaseResult, RenewResult } from "../lease.ts";
import type { Predecessor, SuspendedTurn } from "../turn.ts";
import { absorbSpool } from "./memory-replay.ts";
import { storeError } from "./memory-rows.ts";
import type { LeaseRow, SessionRow } from "./memory-rows.ts";
import type { MemoryState } from "./memory-state.ts";

type Admission =
  | { readonly kind: "free"; readonly input?: PendingInput }
  | { readonly kind: "resumes"; readonly turn: SuspendedTurn }
  | Exclude<AcquireResult, { kind: "granted" }>;

type HeldRow = LeaseRow & Required<Pick<LeaseRow, "held">>;

function isHeld(row: LeaseRow | undefined): row is HeldRow {
  return row?.held !== undefined;
}

function standsAsJudged(row: LeaseRow, reclaim: AcquireRequest["reclaim"]): boolean {
  if (!reclaim || !row.held) return false;
  if (row.held.holder.holderId !== reclaim.holderId || row.fencingToken !== reclaim.fencingToken) return false;
  return reclaim.renewCount === undefined || reclaim.renewCount === row.held.renewCount;
}

export class MemoryLeases implements LeaseStore {
  readonly #state: MemoryState;

  constructor(state: MemoryState) {
    this.#state = state;
  }

  /** Every refusal comes from here, before anything is changed but the head's claim period. */
  #admit(request: AcquireRequest): Admission {
    const state = this.#state;
    const { sessionId, begin } = request;
    const row = state.leases.get(sessionId);
    const lease = state.leaseView(sessionId);
    if (row && lease && lease.standing !== "expired" && !standsAsJudged(row, request.reclaim))
      return { kind: "held", lease };
    const session = state.sessions.get(sessionId);
    const suspended = state.suspendedTurn(session);
    if (suspended) {
      return { kind: mayResume(suspended, begin) ? "resumes" : "suspended", turn: suspended };
    }
    const queue = state.queueOf(session);
    if (!begin) {
      const waiter = firstWaiter(queue, state.now());
      if (!session || !waiter) return { kind: "free" };
      state.wake(session, waiter);
      return { kind: "behind", head: waiter.input };
    }
    const answer = claim(queue, state.now(), begin.runnerId);
    if (answer.kind === "nothing-to-run" || !session) return { kind: "nothing-to-run" };
    if (answer.kind === "take") return { kind: "free", input: answer.input };
    state.wake(session, answer.waiter);
    return { kind: "behind", head: answer.waiter.input };
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const state = this.#state;
    const { sessionId, holder, ttlMs, begin } = request;
    const standing = state.leases.get(sessionId);
    if (isHeld(standing) && standing.held.holder.holderId === holder.holderId) return this.#repeat(standing, request);
    const admission = this.#admit(request);
    if (admission.kind !== "free" && admission.kind !== "resumes") return admission;
    const begun = begin && admission.kind === "free" && state.sessions.get(sessionId)?.turns.get(begin.turnId);
    // Asked again after an answer that was lost: the turn was begun, and ended by somebody else since.
    if (begun && begun.holder.holderId === holder.holderId) return { kind: "nothing-to-run" };
    if (begun)
      throw storeError("STORE_CONTRACT", `Turn ${begin.turnId} of session ${sessionId} has begun before.`, begin);

    absorbSpool(state, sessionId);
    state.settleCrashed(sessionId);
    const fencingToken = (standing?.fencingToken ?? 0) + 1;
    state.leases.set(sessionId, { fencingToken, held: this.#held(holder, ttlMs, 0, state.wallMs()) });
    const session = state.sessions.get(sessionId);
    // Whoever was woken and lost the race has a whole claim period again the next time.
    for (const [inputId, row] of session?.inputs ?? []) session?.inputs.set(inputId, { record: row.record });
    const granted = {
      kind: "granted",
      fencingToken,
      revision: session?.revision ?? 0,
      ...this.#predecessors(sessionId),
    } as const;
    if (session && admission.kind === "resumes") {
      const resumed = state.resume(session, admission.turn, fencingToken, holder);
      return { ...granted, resumed, ...this.#firstInput(session, resumed.turnId) };
    }
    if (!begin || admission.kind === "resumes" || !admission.input || !session) return granted;
    session.turns.set(begin.turnId, {
      state: "running",
      sessionId,
      turnId: begin.turnId,
      fencingToken,
      holder,
      startedAtMs: state.wallMs(),
    });
    return { ...granted, input: state.take(session, admission.input.inputId, begin.turnId) };
  }

  /** Answers a grant again. Its ttl counts from now, as the repeater counts: else it would believe too long (LEASE-3). */
  #repeat({ fencingToken, held }: HeldRow, request: AcquireRequest): AcquireResult {
    const { sessionId, holder, ttlMs, begin } = request;
    const session = this.#state.sessions.get(sessionId);
    const turn = this.#state.runningTurn(session);
    // A turn that asks something has been suspended: this grant resumed it.
    const resumed = turn?.approvals && turn.turnId !== begin?.turnId ? turn : undefined;
    const { input } = session && begin ? this.#firstInput(session, resumed?.turnId ?? begin.turnId) : {};
    if (begin && !input)
      throw storeError(
        "STORE_CONTRACT",
        `Holder ${holder.holderId} already holds session ${sessionId} without turn ${begin.turnId}.`,
      );
    const renewed = this.#held(held.holder, ttlMs, held.renewCount + 1, held.acquiredAtMs);
    this.#state.leases.set(sessionId, { fencingToken, held: renewed });
    const revision = session?.revision ?? 0;
    return {
      kind: "granted",
      fencingToken,
      revision,
      ...this.#predecessors(sessionId),
      ...(input ? { input } : {}),
      ...(resumed ? { resumed } : {}),
    };
  }

  /** What the turn took first: nobody overtakes, so it is the oldest that it holds. */
  #firstInput(session: SessionRow, turnId: string): { readonly input?: TakenInput } {
    const own = this.#state.takenBy(session, turnId).filter(wantsTurn);
    const [input] = own.toSorted((left, right) => left.seq - right.seq);
    return input ? { input } : {};
  }

  #predecessors(sessionId: string): { readonly predecessors?: readonly Predecessor[] } {
    const predecessors = this.#state.predecessors.get(sessionId);
    return predecessors ? { predecessors } : {};
  }

  #held(
    holder: AcquireRequest["holder"],
    ttlMs: number,
    renewCount: number,
    acquiredAtMs: number,
  ): NonNullable<LeaseRow["held"]> {
    const now = this.#state.now();
    const expires = { bootId: now.bootId, bootMs: now.bootMs + ttlMs };
    return { holder, ttlMs, renewCount, expires, acquiredAtMs, expiresAtMs: this.#state.wallMs() + ttlMs };
  }

  async renew(grant: Grant, ttlMs: number): Promise<RenewResult> {
    const row = this.#state.leases.get(grant.sessionId);
    if (!isHeld(row) || !this.#state.grantStands(grant)) {
      const lease = this.#state.leaseView(grant.sessionId);
      return lease ? { kind: "lost", lease } : { kind: "lost" };
    }
    const { holder, renewCount, acquiredAtMs } = row.held;
    this.#state.leases.set(grant.sessionId, {
      fencingToken: row.fencingToken,
      held: this.#held(holder, ttlMs, renewCount + 1, acquiredAtMs),
    });
    return { kind: "renewed" };
  }

  async release(grant: Grant): Promise<ReleaseResult> {
    if (!this.#state.grantStands(grant)) return { kind: "stale" };
    absorbSpool(this.#state, grant.sessionId);
    this.#state.settleCrashed(grant.sessionId);
    this.#state.free(grant.sessionId);
    return { kind: "released", ...this.#state.handOver(grant.sessionId) };
  }

  async read(sessionId: string): Promise<LeaseView | undefined> {
    return this.#state.leaseView(sessionId);
  }
}
