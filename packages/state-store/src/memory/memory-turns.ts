import type { Grant } from "../identity.ts";
import type { TakenInput } from "../inbox.ts";
import type {
  EndRequest,
  EndResult,
  RequestStopResult,
  RunningTurnView,
  SettleForeignResult,
  StopRequest,
  TurnRecord,
  TurnStore,
} from "../turn.ts";
import { absorbSpool } from "./memory-replay.ts";
import { checkPairing, unknownDrafts } from "./memory-drafts.ts";
import { storeError } from "./memory-rows.ts";
import type { MemoryState } from "./memory-state.ts";

export class MemoryTurns implements TurnStore {
  readonly #state: MemoryState;

  constructor(state: MemoryState) {
    this.#state = state;
  }

  async begin(grant: Grant, turnId: string, inputIds: readonly string[]): ReturnType<TurnStore["begin"]> {
    const state = this.#state;
    const row = state.leases.get(grant.sessionId);
    if (!row?.held || !state.grantStands(grant)) return { kind: "stale-token" };
    const session = state.ensureSession(grant.sessionId);
    const running = state.runningTurn(session);
    if (running && running.turnId !== turnId) {
      throw storeError(
        "STORE_CONTRACT",
        `Session ${grant.sessionId} runs turn ${running.turnId}; it must end before turn ${turnId} begins.`,
        { turnId },
      );
    }
    if (session.turns.get(turnId)?.state === "ended")
      throw storeError("STORE_CONTRACT", `Turn ${turnId} has ended: it cannot begin again.`, { turnId });
    const isOurs = (inputId: string): boolean => {
      const input = session.inputs.get(inputId)?.record;
      return input?.state === "pending" || (input?.state === "taken" && input.turnId === turnId);
    };
    const missing = inputIds.find((inputId) => !isOurs(inputId));
    if (missing !== undefined) return { kind: "not-pending", inputId: missing };
    if (!running) {
      const { holder } = row.held;
      session.turns.set(turnId, {
        state: "running",
        sessionId: grant.sessionId,
        turnId,
        fencingToken: grant.fencingToken,
        holder,
        startedAtMs: state.wallMs(),
      });
    }
    const inputs = inputIds.map((inputId): TakenInput => {
      const input = session.inputs.get(inputId)?.record;
      return input?.state === "taken" ? input : state.take(session, inputId, turnId);
    });
    return { kind: "begun", inputs };
  }

  async end(request: EndRequest): Promise<EndResult> {
    const state = this.#state;
    const { grant, turnId, entries = [] } = request;
    const session = state.sessions.get(grant.sessionId);
    const turn = session?.turns.get(turnId);
    if (!session || !turn) {
      // To a late holder a turn that is gone is a race (its session was deleted); to the holder of now it is a bug.
      if (!state.grantStands(grant)) return { kind: "stale-token" };
      throw storeError("STORE_CONTRACT", `Turn ${turnId} of session ${grant.sessionId} was never begun.`, { turnId });
    }
    if (turn.fencingToken !== grant.fencingToken || turn.holder.holderId !== grant.holderId)
      return { kind: "stale-token" };
    const drafts = unknownDrafts(session, entries);
    if (turn.state === "running") {
      if (!state.grantStands(grant)) return { kind: "stale-token" };
      checkPairing(session, turnId, drafts);
      state.addEntries(session, turnId, drafts);
      state.closeTurn(session, turn, request);
      state.noteProcesses(turn, request.leavesProcesses);
    } else if (drafts.length > 0 || turn.outcome !== request.outcome || turn.reason !== request.reason) {
      // Settled by somebody else, or repeated with another ending: what stands, stands.
      return { kind: "stale-token" };
    }
    if (!request.release || !state.grantStands(grant))
      return { kind: "ended", revision: session.revision, pendingCount: state.pendingCount(session) };
    state.free(grant.sessionId);
    return { kind: "ended", revision: session.revision, ...state.handOver(grant.sessionId) };
  }

  async settleForeign(grant: Grant): Promise<SettleForeignResult> {
    const state = this.#state;
    if (!state.grantStands(grant)) return { kind: "changed" };
    absorbSpool(state, grant.sessionId);
    const turn = state.settleCrashed(grant.sessionId);
    state.leases.set(grant.sessionId, { fencingToken: grant.fencingToken + 1 });
    return { kind: "settled", ...(turn ? { turn } : {}), ...state.handOver(grant.sessionId) };
  }

  async read(sessionId: string, turnId: string): Promise<TurnRecord | undefined> {
    return this.#state.sessions.get(sessionId)?.turns.get(turnId);
  }

  async running(sessionId?: string): Promise<readonly RunningTurnView[]> {
    const views: RunningTurnView[] = [];
    for (const session of this.#state.sessions.values()) {
      const turn = this.#state.runningTurn(session);
      if (!turn || (sessionId !== undefined && sessionId !== session.sessionId)) continue;
      const lease = this.#state.leaseView(session.sessionId);
      views.push({ turn, ...(lease ? { lease } : {}), pendingCount: this.#state.pendingCount(session) });
    }
    return views.toSorted((left, right) => left.turn.startedAtMs - right.turn.startedAtMs);
  }

  async requestStop(
    sessionId: string,
    stop: Omit<StopRequest, "atMs">,
    fencingToken?: number,
  ): Promise<RequestStopResult> {
    const session = this.#state.sessions.get(sessionId);
    const turn = this.#state.runningTurn(session);
    if (!session || !turn || turn.fencingToken !== (fencingToken ?? turn.fencingToken))
      return { kind: "nothing-running" };
    const isStronger = turn.stop === undefined || (stop.hard && !turn.stop.hard);
    const asked = isStronger ? { ...turn, stop: { ...stop, atMs: this.#state.wallMs() } } : turn;
    session.turns.set(turn.turnId, asked);
    return { kind: "requested", turn: asked };
  }

  async stopRequest(sessionId: string, turnId: string): Promise<StopRequest | undefined> {
    const turn = this.#state.sessions.get(sessionId)?.turns.get(turnId);
    return turn?.state === "running" ? turn.stop : undefined;
  }
}
