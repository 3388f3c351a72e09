import { digestOf, firstWaiter, wantsTurn } from "@turnkeeper/state-store";
import type {
  Grant,
  InboxStore,
  InputRecord,
  LeaseView,
  Occupation,
  OfferRequest,
  OfferResult,
  PendingInput,
  WithdrawResult,
} from "@turnkeeper/state-store";
import { checkParent, isUnbegun, tellParent } from "./child-rows.ts";
import { adoptInput, findInput, inputRecord, offerInput, orphanInputs, queueOf } from "./input-rows.ts";
import { findLease, grantStands, isGrantOf, leaseView } from "./lease-rows.ts";
import { ensureSession, findSession, touchSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { sessionRunning, settleInput, takeInput } from "./settlement.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Transaction } from "./transaction.ts";
import { findSuspendedTurn } from "./turn-rows.ts";

/** An ended input that never reached a turn leaves its id free to be offered again. */
function mayBeOfferedAgain(input: InputRecord): boolean {
  return input.state === "settled" && input.turnId === undefined;
}

/** Who keeps the session busy; a lease that ran out, or that the caller proved dead, does not. */
function busyHolder(tx: Transaction, { sessionId, deadGrant }: OfferRequest): LeaseView | undefined {
  const row = findLease(tx, sessionId);
  const lease = leaseView(tx, sessionId, row);
  const isDead = deadGrant !== undefined && isGrantOf(row, deadGrant);
  return lease === undefined || lease.standing === "expired" || isDead ? undefined : lease;
}

/** An orphan that is offered again gets the offerer as its runner (INBOX-2). */
function adopt(tx: Transaction, session: SessionRow, known: InputRecord, runner: OfferRequest["runner"]): InputRecord {
  if (known.state !== "pending" || known.runner !== undefined) return known;
  adoptInput(tx, session, known.inputId, runner);
  return { ...known, delivery: "turn", runner };
}

function offer(tx: Transaction, request: OfferRequest): OfferResult {
  const { sessionId, inputId, text, onBusy, runner, parent, settings, queueLengthMax = Infinity } = request;
  const lease = busyHolder(tx, request);
  const session = findSession(tx, sessionId);
  if (session && parent) checkParent(session, parent);
  const suspended = session && findSuspendedTurn(tx, session);
  const told: Occupation = { ...(lease ? { lease } : {}), ...(suspended ? { suspended } : {}) };
  const row = session && findInput(tx, session, inputId);
  const known = row && inputRecord(sessionId, row);
  const digest = digestOf(text);
  if (known && known.digest !== digest) return { kind: "conflict", input: known };

  const queue = session ? queueOf(tx, session) : [];
  const head = queue.length > 0 ? firstWaiter(queue, tx.now)?.input : undefined;
  const isBusy = lease !== undefined || suspended !== undefined || head !== undefined;
  const leaves = isBusy && (onBusy === "queue" || onBusy === "steer");
  const adopts = !isBusy || onBusy === "wait" || onBusy === "interrupt";
  if (session && known && !mayBeOfferedAgain(known))
    return { kind: "known", input: adopts ? adopt(tx, session, known, runner) : known, ...told };
  if (isBusy && onBusy === "reject") return { kind: "busy", ...told, ...(head ? { head } : {}) };
  const waitingCount = queue.filter((queued) => wantsTurn(queued.input)).length;
  if (waitingCount >= queueLengthMax) return { kind: "full", waitingCount };

  const target = session ?? ensureSession(tx, sessionId, parent);
  const input = offerInput(tx, target, {
    inputId,
    text,
    digest,
    delivery: leaves && onBusy === "steer" ? "steer" : "turn",
    ...(leaves ? {} : { runner }),
    ...(settings === undefined ? {} : { settings }),
  });
  touchSession(tx, target);
  return { kind: "accepted", input, ...told };
}

function waitingSessions(tx: Transaction, limit: number): readonly string[] {
  // The pending inputs have an index of their own, and are few.
  const rows = tx.rows.all<{ session_id: string }>(
    `SELECT session.session_id FROM input JOIN session USING (session_no)
     WHERE input.turn_id IS NULL AND input.ended_as IS NULL AND input.child IS NULL
     GROUP BY input.session_no ORDER BY min(input.seq) LIMIT ?`,
    limit,
  );
  return rows.map(({ session_id }) => session_id);
}

function takeSteers(tx: Transaction, grant: Grant, turnId: string): Awaited<ReturnType<InboxStore["takeSteers"]>> {
  if (!grantStands(tx, grant)) return { kind: "stale-token" };
  const session = sessionRunning(tx, findSession(tx, grant.sessionId), grant, turnId);
  const steers = queueOf(tx, session).filter(({ input }) => input.delivery === "steer" && input.runner === undefined);
  return { kind: "taken", inputs: steers.map(({ input }) => takeInput(tx, session, input, turnId)) };
}

function withdraw(tx: Transaction, sessionId: string, inputId: string, end: "cancelled" | "expired"): WithdrawResult {
  const session = findSession(tx, sessionId);
  const row = session && findInput(tx, session, inputId);
  if (!session || !row) return { kind: "unknown" };
  const input = inputRecord(sessionId, row);
  if (input.state === "taken") return { kind: "taken", turnId: input.turnId };
  if (input.state === "settled")
    return { kind: "settled", end: input.end, ...(input.turnId === undefined ? {} : { turnId: input.turnId }) };
  settleInput(tx, session, inputId, end);
  if (isUnbegun(tx, session)) tellParent(tx, session, { outcome: end });
  return { kind: "withdrawn" };
}

export class SqliteInbox implements InboxStore {
  readonly #handle: StoreHandle;

  constructor(handle: StoreHandle) {
    this.#handle = handle;
  }

  offer(request: OfferRequest): Promise<OfferResult> {
    return this.#handle.write("ordinary", `store an input of session ${request.sessionId}`, (tx) => offer(tx, request));
  }

  read(sessionId: string, inputId: string): Promise<InputRecord | undefined> {
    return this.#handle.read(`read an input of session ${sessionId}`, (tx) => {
      const session = findSession(tx, sessionId);
      const row = session && findInput(tx, session, inputId);
      return row && inputRecord(sessionId, row);
    });
  }

  pending(sessionId: string): Promise<readonly PendingInput[]> {
    return this.#handle.read(`read the queue of session ${sessionId}`, (tx) => {
      const session = findSession(tx, sessionId);
      return session ? queueOf(tx, session).map(({ input }) => input) : [];
    });
  }

  waitingSessions(limit: number): Promise<readonly string[]> {
    return this.#handle.read("read which sessions wait", (tx) => waitingSessions(tx, limit));
  }

  takeSteers(grant: Grant, turnId: string): ReturnType<InboxStore["takeSteers"]> {
    return this.#handle.write("turn-data", `take the steers of session ${grant.sessionId}`, (tx) =>
      takeSteers(tx, grant, turnId),
    );
  }

  withdraw(sessionId: string, inputId: string, end: "cancelled" | "expired"): Promise<WithdrawResult> {
    return this.#handle.write("ordinary", `withdraw an input of session ${sessionId}`, (tx) =>
      withdraw(tx, sessionId, inputId, end),
    );
  }

  abandon(sessionId: string, runnerId: string, inputId?: string): Promise<number> {
    return this.#handle.write("ordinary", `abandon inputs of session ${sessionId}`, (tx) => {
      const session = findSession(tx, sessionId);
      return session ? orphanInputs(tx, session, runnerId, inputId) : 0;
    });
  }
}
