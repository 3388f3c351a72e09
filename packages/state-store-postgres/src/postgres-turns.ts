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
import { inputRecord, pendingCount, takenBy } from "./input-rows.ts";
import { freeLease, isGrantOf, leaseHolder, leaseView, serverBootId } from "./lease-rows.ts";
import type { LeaseRow } from "./lease-rows.ts";
import type { Server } from "./server.ts";
import type { SessionImage } from "./session-image.ts";
import { parentOf } from "./session-rows.ts";
import type { SessionWrites } from "./session-writes.ts";
import { closeTurn, handOver, mustRun, noteProcesses, settleCrashed, stopSuspended, takeInput } from "./settlement.ts";
import type { PostgresSpool } from "./postgres-spool.ts";
import type { SpoolReplay } from "./spool-replay.ts";
import { storeError } from "./store-failure.ts";
import {
  approvalsOf,
  isSuspended,
  openTurn,
  runningTurn,
  startTurn,
  stopOf,
  suspendedTurn,
  suspendTurn,
  turnRecord,
} from "./turn-rows.ts";
import type { TurnRow } from "./turn-rows.ts";

type BeginResult = Awaited<ReturnType<TurnStore["begin"]>>;

function begin(image: SessionImage, grant: Grant, turnId: string, inputIds: readonly string[]): BeginResult {
  const { lease } = image;
  if (!isGrantOf(lease, grant)) return { kind: "stale-token" };
  image.ensureSession();
  const running = image.openTurn;
  if (running && running.turn_id !== turnId)
    throw storeError(
      "STORE_CONTRACT",
      `Session ${grant.sessionId} runs turn ${running.turn_id}; it must end before turn ${turnId} begins.`,
      { turnId },
    );
  if (!running && image.turn(turnId))
    throw storeError("STORE_CONTRACT", `Turn ${turnId} has ended: it cannot begin again.`, { turnId });

  const inputs: (PendingInput | TakenInput)[] = [];
  for (const inputId of inputIds) {
    const row = image.input(inputId);
    const input = row && inputRecord(grant.sessionId, row);
    const isOurs = input?.state === "pending" || (input?.state === "taken" && input.turnId === turnId);
    if (!isOurs) return { kind: "not-pending", inputId };
    inputs.push(input);
  }
  if (!running) startTurn(image, { turnId, fencingToken: grant.fencingToken, holder: leaseHolder(lease) });
  return {
    kind: "begun",
    inputs: inputs.map((input) => (input.state === "taken" ? input : takeInput(image, input, turnId))),
  };
}

function end(image: SessionImage, request: EndRequest): EndResult {
  const { grant, turnId, entries = [] } = request;
  const stands = isGrantOf(image.lease, grant);
  const turn = image.session && image.turn(turnId);
  if (!turn) {
    // To a late holder a turn that is gone is a race (its session was deleted); to the holder of now it is a bug.
    if (!stands) return { kind: "stale-token" };
    throw storeError("STORE_CONTRACT", `Turn ${turnId} of session ${grant.sessionId} was never begun.`, { turnId });
  }
  if (turn.fencing_token !== grant.fencingToken || turn.holder_id !== grant.holderId) return { kind: "stale-token" };
  const drafts = unknownDrafts(image, entries);
  const frees = request.release && stands;
  if (turn.outcome === null) {
    if (!stands) return { kind: "stale-token" };
    addEntries(image, turnId, drafts);
    closeTurn(image, turn, request);
    if (frees) freeLease(image);
    noteProcesses(image, turn, request.leavesProcesses);
  } else if (drafts.length > 0 || turn.outcome !== request.outcome || turn.reason !== (request.reason ?? null)) {
    // Settled by somebody else, or repeated with another ending: what stands, stands.
    return { kind: "stale-token" };
  } else if (frees) freeLease(image);
  const revision = image.session?.revision ?? 0;
  if (!frees) return { kind: "ended", revision, pendingCount: pendingCount(image) };
  return { kind: "ended", revision, ...handOver(image) };
}

function settleForeign(image: SessionImage, grant: Grant, replay: SpoolReplay): SettleForeignResult {
  if (!isGrantOf(image.lease, grant)) return { kind: "changed" };
  freeLease(image, 1);
  replay.absorb(image);
  const turn = settleCrashed(image);
  return { kind: "settled", ...(turn ? { turn } : {}), ...handOver(image) };
}

function requestStop(
  image: SessionImage,
  stop: Omit<StopRequest, "atMs">,
  fencingToken: number | undefined,
): RequestStopResult {
  const row = image.openTurn;
  if (!row || row.fencing_token !== (fencingToken ?? row.fencing_token)) return { kind: "nothing-running" };
  if (isSuspended(row)) {
    const settled = stopSuspended(image, row, { ...stop, atMs: image.atMs });
    image.ring();
    return { kind: "stopped", settled, ...handOver(image) };
  }
  const turn = runningTurn(image.sessionId, row);
  const isStronger = turn.stop === undefined || (stop.hard && !turn.stop.hard);
  if (!isStronger) return { kind: "requested", turn };
  const asked: StopRequest = { ...stop, atMs: image.atMs };
  image.putTurn({ ...row, stop: JSON.stringify(asked) });
  image.ring();
  return { kind: "requested", turn: { ...turn, stop: asked } };
}

function stopOverdue(image: SessionImage): Awaited<ReturnType<TurnStore["stopOverdue"]>> {
  const row = image.openTurn;
  if (!row || !isSuspended(row) || !isOverdue(suspendedTurn(image.sessionId, row), image.atMs))
    return { kind: "nothing-running" };
  const settled = stopSuspended(image, row, { ...overdueStop, atMs: image.atMs });
  image.ring();
  return { kind: "stopped", settled, ...handOver(image) };
}

/** The calls that the turn waits for from now on; throws for what nobody could answer or go on with. */
function askedCalls(image: SessionImage, running: TurnRow, request: SuspendRequest): readonly AskedCall[] {
  const { turn_id: turnId } = running;
  const refused = (why: string): Error =>
    storeError("STORE_CONTRACT", `Turn ${turnId} of session ${image.sessionId} cannot be suspended: ${why}.`, {
      turnId,
    });
  if (!takenBy(image, turnId).some(wantsTurn)) throw refused("it holds no input");
  const facts = {
    open: new Map(openCalls(image, turnId).map(({ callId, name }) => [callId, name])),
    atMs: image.atMs,
    childOf: (childId: string) => {
      const { session } = image.other(childId);
      return session && { parent: parentOf(session), hasToldParent: session.has_told_parent };
    },
  };
  return withAsked(runningTurn(image.sessionId, running), request, facts, refused);
}

function suspend(image: SessionImage, request: SuspendRequest): SuspendResult {
  const { grant, turnId, usage, leavesProcesses } = request;
  const own = image.session && image.turn(turnId);
  const isOwn = own?.fencing_token === grant.fencingToken && own.holder_id === grant.holderId;
  // Repeated after an outcome that was not known: what stands is told again.
  if (own && isOwn && isSuspended(own))
    return { kind: "suspended", turn: suspendedTurn(grant.sessionId, own), pendingCount: pendingCount(image) };
  if (!isGrantOf(image.lease, grant)) {
    const since = own && turnRecord(grant.sessionId, own);
    return since && hasBeenSuspended(since, request)
      ? { kind: "was-suspended", turn: since, pendingCount: pendingCount(image) }
      : { kind: "stale-token" };
  }
  mustRun(image, grant, turnId);
  const running = image.openTurn;
  if (!running) return { kind: "stale-token" };
  const approvals = askedCalls(image, running, request);
  const row = suspendTurn(image, running, { approvals, ...(usage ? { usage } : {}) });
  freeLease(image);
  noteProcesses(image, running, leavesProcesses);
  const stop = stopOf(running);
  if (!stop) return { kind: "suspended", turn: suspendedTurn(grant.sessionId, row), pendingCount: pendingCount(image) };
  const settled = stopSuspended(image, row, stop);
  return { kind: "stopped", settled, ...handOver(image) };
}

function answer(image: SessionImage, request: AnswerRequest): AnswerResult {
  const { sessionId, callId, turnId } = request;
  const row = image.session && image.newestTurn;
  if (!row || row.turn_id !== (turnId ?? row.turn_id)) return { kind: "nothing-asked" };
  const approvals = approvalsOf(row) ?? [];
  const known = approvals.find((asked) => asked.callId === callId)?.answer;
  if (known) return { kind: "already-answered", answer: known };
  const answered = withAnswer(approvals, request, image.atMs);
  if (!answered || !isSuspended(row)) return { kind: "nothing-asked" };
  image.putTurn({ ...row, approvals: JSON.stringify(answered) });
  image.ring();
  return { kind: "recorded", turn: { ...suspendedTurn(sessionId, row), approvals: answered } };
}

interface OpenRow {
  readonly session_id: string;
  readonly turn: TurnRow;
  readonly lease: LeaseRow | null;
  readonly pending_count: number;
  readonly clock_ms: number;
  readonly wall_ms: number;
}

function openView(row: OpenRow): OpenTurnView {
  const now = { bootId: serverBootId, bootMs: row.clock_ms };
  const lease = leaseView(row.session_id, row.lease ?? undefined, now);
  const turn = openTurn(row.session_id, row.turn);
  return {
    turn,
    ...(lease ? { lease } : {}),
    pendingCount: row.pending_count,
    ...(isOverdue(turn, row.wall_ms) ? { isOverdue: true } : {}),
  };
}

export class PostgresTurns implements TurnStore {
  readonly #server: Server;
  readonly #writes: SessionWrites;
  readonly #spool: PostgresSpool;

  constructor(server: Server, writes: SessionWrites, spool: PostgresSpool) {
    this.#server = server;
    this.#writes = writes;
    this.#spool = spool;
  }

  begin(grant: Grant, turnId: string, inputIds: readonly string[]): Promise<BeginResult> {
    return this.#writes.write({
      sessionId: grant.sessionId,
      attempt: `begin turn ${turnId} of session ${grant.sessionId}`,
      kind: "turn-data",
      isRepeatable: true,
      reading: { turnIds: [turnId], inputIds },
      decide: (image) => begin(image, grant, turnId, inputIds),
    });
  }

  end(request: EndRequest): Promise<EndResult> {
    const { grant, turnId, entries = [] } = request;
    return this.#writes.write({
      sessionId: grant.sessionId,
      attempt: `end turn ${turnId} of session ${grant.sessionId}`,
      kind: "turn-data",
      isRepeatable: true,
      reading: { turnIds: [turnId], keys: entries.map(({ key }) => key) },
      decide: (image) => end(image, request),
    });
  }

  suspend(request: SuspendRequest): Promise<SuspendResult> {
    const { grant, turnId } = request;
    return this.#writes.write({
      sessionId: grant.sessionId,
      attempt: `suspend turn ${turnId} of session ${grant.sessionId}`,
      kind: "turn-data",
      isRepeatable: true,
      reading: { turnIds: [turnId] },
      decide: (image) => suspend(image, request),
    });
  }

  answer(request: AnswerRequest): Promise<AnswerResult> {
    return this.#writes.write({
      sessionId: request.sessionId,
      attempt: `answer call ${request.callId} of session ${request.sessionId}`,
      kind: "ordinary",
      decide: (image) => answer(image, request),
    });
  }

  settleForeign(grant: Grant): Promise<SettleForeignResult> {
    const { sessionId } = grant;
    return this.#spool.replaying(sessionId, (replay) =>
      this.#writes.write({
        sessionId,
        attempt: `settle session ${sessionId}`,
        kind: "turn-data",
        reading: replay.reading({}),
        decide: replay.deciding((image) => settleForeign(image, grant, replay)),
      }),
    );
  }

  async read(sessionId: string, turnId: string): Promise<TurnRecord | undefined> {
    const row = await this.#turn(`read turn ${turnId} of session ${sessionId}`, sessionId, turnId);
    return row && turnRecord(sessionId, row);
  }

  async stopRequest(sessionId: string, turnId: string): Promise<StopRequest | undefined> {
    const row = await this.#turn(`read the stop request of session ${sessionId}`, sessionId, turnId);
    return row?.outcome === null && !isSuspended(row) ? stopOf(row) : undefined;
  }

  async #turn(attempt: string, sessionId: string, turnId: string): Promise<TurnRow | undefined> {
    const { schema } = this.#server;
    const [row] = await this.#server.read<{ turn: TurnRow }>(
      attempt,
      `SELECT row_to_json(turn) AS turn FROM ${schema}.turn JOIN ${schema}.session USING (session_no)
       WHERE session_id = $1 AND turn_id = $2`,
      [sessionId, turnId],
    );
    return row?.turn;
  }

  async running(sessionId?: string): Promise<readonly OpenTurnView[]> {
    const { schema } = this.#server;
    const rows = await this.#server.read<OpenRow>(
      "list the running turns",
      // Turn by turn: a join would read every session of the store as soon as some thousand turns run.
      `SELECT session_id, row_to_json(turn) AS turn, (SELECT ${schema}.clock_ms()) AS clock_ms,
         (SELECT ${schema}.wall_ms()) AS wall_ms,
         (SELECT row_to_json(lease) FROM ${schema}.lease WHERE lease.session_id = own.session_id) AS lease,
         (SELECT count(*)::integer FROM ${schema}.input
          WHERE input.session_no = turn.session_no AND turn_id IS NULL AND ended_as IS NULL AND child IS NULL) AS pending_count
       FROM ${schema}.turn,
         LATERAL (SELECT session_id FROM ${schema}.session WHERE session.session_no = turn.session_no OFFSET 0) AS own
       WHERE outcome IS NULL ${sessionId === undefined ? "" : `AND session_no = (SELECT session_no FROM ${schema}.session WHERE session_id = $1)`}
       ORDER BY started_at_ms, session_no`,
      sessionId === undefined ? [] : [sessionId],
    );
    return rows.map(openView);
  }

  requestStop(sessionId: string, stop: Omit<StopRequest, "atMs">, fencingToken?: number): Promise<RequestStopResult> {
    return this.#writes.write({
      sessionId,
      attempt: `ask session ${sessionId} to stop`,
      kind: "ordinary",
      decide: (image) => requestStop(image, stop, fencingToken),
    });
  }

  stopOverdue(sessionId: string): ReturnType<TurnStore["stopOverdue"]> {
    return this.#writes.write({
      sessionId,
      attempt: `end what waits too long in session ${sessionId}`,
      kind: "ordinary",
      decide: stopOverdue,
    });
  }
}
