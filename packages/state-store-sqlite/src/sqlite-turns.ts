import type {
  EndRequest,
  EndResult,
  Grant,
  PendingInput,
  RequestStopResult,
  RunningTurnView,
  SettleForeignResult,
  StopRequest,
  TakenInput,
  TurnRecord,
  TurnStore,
} from "@turnkeeper/state-store";
import { addEntries, unknownDrafts } from "./entry-rows.ts";
import { findInput, inputRecord, pendingCount } from "./input-rows.ts";
import { findLease, findLeaseView, freeLease, grantStands, isGrantOf, leaseHolder } from "./lease-rows.ts";
import { ensureSession, findSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { closeTurn, handOver, noteProcesses, settleCrashed, takeInput } from "./settlement.ts";
import type { SpoolFolder } from "./spool-folder.ts";
import { SpoolReplay } from "./spool-replay.ts";
import { storeError } from "./store-failure.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Transaction } from "./transaction.ts";
import { askToStop, findRunningTurn, findTurn, runningTurn, startTurn, stopOf, turnRecord } from "./turn-rows.ts";
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
  const running = findRunningTurn(tx, session);
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
  const row = session && findRunningTurn(tx, session);
  if (!session || !row) return { kind: "nothing-running" };
  const turn = runningTurn(sessionId, row);
  if (turn.fencingToken !== (fencingToken ?? turn.fencingToken)) return { kind: "nothing-running" };
  const isStronger = turn.stop === undefined || (stop.hard && !turn.stop.hard);
  if (!isStronger) return { kind: "requested", turn };
  const asked: StopRequest = { ...stop, atMs: tx.atMs };
  askToStop(tx, session, turn.turnId, asked);
  return { kind: "requested", turn: { ...turn, stop: asked } };
}

function listRunning(tx: Transaction, sessionId: string | undefined): RunningTurnView[] {
  const rows = tx.rows.all<TurnRow & SessionRow>(
    `SELECT * FROM turn JOIN session USING (session_no) WHERE outcome IS NULL AND session_id = coalesce(?, session_id)
     ORDER BY started_at_ms, session_no`,
    sessionId ?? null,
  );
  return rows.map((row) => {
    const lease = findLeaseView(tx, row.session_id);
    return {
      turn: runningTurn(row.session_id, row),
      ...(lease ? { lease } : {}),
      pendingCount: pendingCount(tx, row),
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

  running(sessionId?: string): Promise<readonly RunningTurnView[]> {
    return this.#handle.read("list the running turns", (tx) => listRunning(tx, sessionId));
  }

  requestStop(sessionId: string, stop: Omit<StopRequest, "atMs">, fencingToken?: number): Promise<RequestStopResult> {
    return this.#handle.write("ordinary", `ask session ${sessionId} to stop`, (tx) =>
      requestStop(tx, sessionId, stop, fencingToken),
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
