import { hasBeenSuspended, isOverdue, overdueStop, wantsTurn, withAnswer, withAsked } from "@turnkeeper/state-store";
import type {
  AnswerRequest,
  AnswerResult,
  AskedCall,
  EndRequest,
  EndResult,
  Grant,
  OpenTurnView,
  PendingInput,
  RequestStopResult,
  SettleForeignResult,
  StopRequest,
  SuspendRequest,
  SuspendResult,
  TakenInput,
  TurnRecord,
  TurnStore,
} from "@turnkeeper/state-store";
import { addEntries, openCalls, unknownDrafts } from "./entry-rows.ts";
import { findInput, inputRecord, pendingCount, takenBy } from "./input-rows.ts";
import { findLease, findLeaseView, freeLease, grantStands, isGrantOf, leaseHolder } from "./lease-rows.ts";
import { ensureSession, findSession, parentOf } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import {
  closeTurn,
  handOver,
  noteProcesses,
  sessionRunning,
  settleCrashed,
  stopSuspended,
  takeInput,
} from "./settlement.ts";
import type { SpoolFolder } from "./spool-folder.ts";
import { SpoolReplay } from "./spool-replay.ts";
import { storeError } from "./store-failure.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Transaction } from "./transaction.ts";
import {
  approvalsOf,
  askToStop,
  findNewestTurn,
  findOpenTurn,
  findTurn,
  isSuspended,
  openTurn,
  runningTurn,
  startTurn,
  stopOf,
  storeAnswers,
  suspendedTurn,
  suspendTurn,
  turnRecord,
} from "./turn-rows.ts";
import type { TurnRow } from "./turn-rows.ts";

function begin(
  tx: Transaction,
  grant: Grant,
  turnId: string,
  inputIds: readonly string[],
): Awaited<ReturnType<TurnStore["begin"]>> {
  const lease = findLease(tx, grant.sessionId);
  if (!isGrantOf(lease, grant)) return { kind: "stale-token" };
  const session = ensureSession(tx, grant.sessionId);
  const running = findOpenTurn(tx, session);
  if (running && running.turn_id !== turnId)
    throw storeError(
      "STORE_CONTRACT",
      `Session ${grant.sessionId} runs turn ${running.turn_id}; it must end before turn ${turnId} begins.`,
      { turnId },
    );
  if (!running && findTurn(tx, session, turnId))
    throw storeError("STORE_CONTRACT", `Turn ${turnId} has ended: it cannot begin again.`, { turnId });

  const inputs: (PendingInput | TakenInput)[] = [];
  for (const inputId of inputIds) {
    const row = findInput(tx, session, inputId);
    const input = row && inputRecord(grant.sessionId, row);
    const isOurs = input?.state === "pending" || (input?.state === "taken" && input.turnId === turnId);
    if (!isOurs) return { kind: "not-pending", inputId };
    inputs.push(input);
  }
  if (!running) startTurn(tx, session, { turnId, fencingToken: grant.fencingToken, holder: leaseHolder(lease) });
  return {
    kind: "begun",
    inputs: inputs.map((input) => (input.state === "taken" ? input : takeInput(tx, session, input, turnId))),
  };
}

function end(tx: Transaction, request: EndRequest): EndResult {
  const { grant, turnId, entries = [] } = request;
  const session = findSession(tx, grant.sessionId);
  const turn = session && findTurn(tx, session, turnId);
  if (!session || !turn) {
    // To a late holder a turn that is gone is a race (its session was deleted); to the holder of now it is a bug.
    if (!grantStands(tx, grant)) return { kind: "stale-token" };
    throw storeError("STORE_CONTRACT", `Turn ${turnId} of session ${grant.sessionId} was never begun.`, { turnId });
  }
  if (turn.fencing_token !== grant.fencingToken || turn.holder_id !== grant.holderId) return { kind: "stale-token" };
  const drafts = unknownDrafts(tx, session, entries);
  if (turn.outcome === null) {
    if (!grantStands(tx, grant)) return { kind: "stale-token" };
    addEntries(tx, session, turnId, drafts);
    closeTurn(tx, session, turn, request);
    noteProcesses(tx, session, turn, request.leavesProcesses);
  } else if (drafts.length > 0 || turn.outcome !== request.outcome || turn.reason !== (request.reason ?? null)) {
    // Settled by somebody else, or repeated with another ending: what stands, stands.
    return { kind: "stale-token" };
  }
  if (!request.release || !freeLease(tx, grant))
    return { kind: "ended", revision: session.revision, pendingCount: pendingCount(tx, session) };
  return { kind: "ended", revision: session.revision, ...handOver(tx, session) };
}

function settleForeign(tx: Transaction, grant: Grant, replay: SpoolReplay): SettleForeignResult {
  if (!freeLease(tx, grant, 1)) return { kind: "changed" };
  const session = findSession(tx, grant.sessionId);
  if (session) replay.absorb(tx, session);
  const turn = session && settleCrashed(tx, session);
  return { kind: "settled", ...(turn ? { turn } : {}), ...handOver(tx, session) };
}

function requestStop(
  tx: Transaction,
  sessionId: string,
  stop: Omit<StopRequest, "atMs">,
  fencingToken: number | undefined,
): RequestStopResult {
  const session = findSession(tx, sessionId);
  const row = session && findOpenTurn(tx, session);
  if (!session || !row || row.fencing_token !== (fencingToken ?? row.fencing_token)) return { kind: "nothing-running" };
  if (isSuspended(row)) {
    tx.requireFull();
    const settled = stopSuspended(tx, session, row, { ...stop, atMs: tx.atMs });
    return { kind: "stopped", settled, ...handOver(tx, session) };
  }
  const turn = runningTurn(sessionId, row);
  const isStronger = turn.stop === undefined || (stop.hard && !turn.stop.hard);
  if (!isStronger) return { kind: "requested", turn };
  const asked: StopRequest = { ...stop, atMs: tx.atMs };
  askToStop(tx, session, turn.turnId, asked);
  return { kind: "requested", turn: { ...turn, stop: asked } };
}

function stopOverdue(tx: Transaction, sessionId: string): Awaited<ReturnType<TurnStore["stopOverdue"]>> {
  const session = findSession(tx, sessionId);
  const row = session && findOpenTurn(tx, session);
  if (!session || !row || !isSuspended(row) || !isOverdue(suspendedTurn(sessionId, row), tx.atMs))
    return { kind: "nothing-running" };
  tx.requireFull();
  const settled = stopSuspended(tx, session, row, { ...overdueStop, atMs: tx.atMs });
  return { kind: "stopped", settled, ...handOver(tx, session) };
}

/** The calls that the turn waits for from now on; throws for what nobody could answer or go on with. */
function askedCalls(
  tx: Transaction,
  session: SessionRow,
  running: TurnRow,
  request: SuspendRequest,
): readonly AskedCall[] {
  const { turn_id: turnId } = running;
  const refused = (why: string): Error =>
    storeError("STORE_CONTRACT", `Turn ${turnId} of session ${session.session_id} cannot be suspended: ${why}.`, {
      turnId,
    });
  if (!takenBy(tx, session, turnId).some(wantsTurn)) throw refused("it holds no input");
  const facts = {
    open: new Map(openCalls(tx, session, turnId).map(({ callId, name }) => [callId, name])),
    atMs: tx.atMs,
    childOf: (childId: string) => {
      const child = findSession(tx, childId);
      return child && { parent: parentOf(child), hasToldParent: child.has_told_parent === 1 };
    },
  };
  return withAsked(runningTurn(session.session_id, running), request, facts, refused);
}

function suspend(tx: Transaction, request: SuspendRequest): SuspendResult {
  const { grant, turnId, usage, leavesProcesses } = request;
  const known = findSession(tx, grant.sessionId);
  const own = known && findTurn(tx, known, turnId);
  const isOwn = own?.fencing_token === grant.fencingToken && own.holder_id === grant.holderId;
  // Repeated after an outcome that was not known: what stands is told again.
  if (known && isOwn && isSuspended(own))
    return { kind: "suspended", turn: suspendedTurn(grant.sessionId, own), pendingCount: pendingCount(tx, known) };
  if (!grantStands(tx, grant)) {
    const since = own && turnRecord(grant.sessionId, own);
    return known && since && hasBeenSuspended(since, request)
      ? { kind: "was-suspended", turn: since, pendingCount: pendingCount(tx, known) }
      : { kind: "stale-token" };
  }
  const session = sessionRunning(tx, known, grant, turnId);
  const running = findOpenTurn(tx, session);
  if (!running) return { kind: "stale-token" };
  const approvals = askedCalls(tx, session, running, request);
  const row = suspendTurn(tx, session, running, { approvals, ...(usage ? { usage } : {}) });
  noteProcesses(tx, session, running, leavesProcesses);
  freeLease(tx, grant);
  const stop = stopOf(running);
  if (!stop)
    return { kind: "suspended", turn: suspendedTurn(grant.sessionId, row), pendingCount: pendingCount(tx, session) };
  const settled = stopSuspended(tx, session, row, stop);
  return { kind: "stopped", settled, ...handOver(tx, session) };
}

function answer(tx: Transaction, request: AnswerRequest): AnswerResult {
  const { sessionId, callId, turnId } = request;
  const session = findSession(tx, sessionId);
  const row = session && findNewestTurn(tx, session);
  if (!session || !row || row.turn_id !== (turnId ?? row.turn_id)) return { kind: "nothing-asked" };
  const approvals = approvalsOf(row) ?? [];
  const known = approvals.find((asked) => asked.callId === callId)?.answer;
  if (known) return { kind: "already-answered", answer: known };
  const answered = withAnswer(approvals, request, tx.atMs);
  if (!answered || !isSuspended(row)) return { kind: "nothing-asked" };
  storeAnswers(tx, session, row.turn_id, answered);
  return { kind: "recorded", turn: { ...suspendedTurn(sessionId, row), approvals: answered } };
}

function listRunning(tx: Transaction, sessionId: string | undefined): OpenTurnView[] {
  const rows = tx.rows.all<TurnRow & SessionRow>(
    `SELECT * FROM turn JOIN session USING (session_no) WHERE outcome IS NULL AND session_id = coalesce(?, session_id)
     ORDER BY started_at_ms, session_no`,
    sessionId ?? null,
  );
  return rows.map((row) => {
    const lease = findLeaseView(tx, row.session_id);
    const turn = openTurn(row.session_id, row);
    return {
      turn,
      ...(lease ? { lease } : {}),
      pendingCount: pendingCount(tx, row),
      ...(isOverdue(turn, tx.atMs) ? { isOverdue: true } : {}),
    };
  });
}

export class SqliteTurns implements TurnStore {
  readonly #handle: StoreHandle;
  readonly #spool: SpoolFolder;

  constructor(handle: StoreHandle, spool: SpoolFolder) {
    this.#handle = handle;
    this.#spool = spool;
  }

  begin(grant: Grant, turnId: string, inputIds: readonly string[]): ReturnType<TurnStore["begin"]> {
    return this.#handle.write("turn-data", `begin turn ${turnId} of session ${grant.sessionId}`, (tx) =>
      begin(tx, grant, turnId, inputIds),
    );
  }

  end(request: EndRequest): Promise<EndResult> {
    return this.#handle.write("turn-data", `end turn ${request.turnId} of session ${request.grant.sessionId}`, (tx) =>
      end(tx, request),
    );
  }

  async settleForeign(grant: Grant): Promise<SettleForeignResult> {
    const replay = new SpoolReplay(this.#spool);
    const attempt = `settle session ${grant.sessionId}`;
    const result = await this.#handle.write("turn-data", attempt, (tx) => settleForeign(tx, grant, replay));
    replay.finish();
    return result;
  }

  read(sessionId: string, turnId: string): Promise<TurnRecord | undefined> {
    return this.#handle.read(`read turn ${turnId} of session ${sessionId}`, (tx) => {
      const session = findSession(tx, sessionId);
      const row = session && findTurn(tx, session, turnId);
      return row && turnRecord(sessionId, row);
    });
  }

  running(sessionId?: string): Promise<readonly OpenTurnView[]> {
    return this.#handle.read("list the running turns", (tx) => listRunning(tx, sessionId));
  }

  suspend(request: SuspendRequest): Promise<SuspendResult> {
    const attempt = `suspend turn ${request.turnId} of session ${request.grant.sessionId}`;
    return this.#handle.write("turn-data", attempt, (tx) => suspend(tx, request));
  }

  answer(request: AnswerRequest): Promise<AnswerResult> {
    const attempt = `answer call ${request.callId} of session ${request.sessionId}`;
    return this.#handle.write("ordinary", attempt, (tx) => answer(tx, request));
  }

  requestStop(sessionId: string, stop: Omit<StopRequest, "atMs">, fencingToken?: number): Promise<RequestStopResult> {
    return this.#handle.write("ordinary", `ask session ${sessionId} to stop`, (tx) =>
      requestStop(tx, sessionId, stop, fencingToken),
    );
  }

  stopOverdue(sessionId: string): ReturnType<TurnStore["stopOverdue"]> {
    return this.#handle.write("ordinary", `end what waits too long in session ${sessionId}`, (tx) =>
      stopOverdue(tx, sessionId),
    );
  }

  stopRequest(sessionId: string, turnId: string): Promise<StopRequest | undefined> {
    return this.#handle.read(`read the stop request of session ${sessionId}`, (tx) => {
      const session = findSession(tx, sessionId);
      const row = session && findTurn(tx, session, turnId);
      return row?.outcome === null ? stopOf(row) : undefined;
    });
  }
}
