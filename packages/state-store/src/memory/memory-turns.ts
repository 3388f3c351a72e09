import { hasBeenSuspended, isOverdue, overdueStop, withAnswer, withAsked } from "../approval.ts";
import { wantsTurn } from "../child.ts";
import type { AnswerRequest, AnswerResult, AskedCall, SuspendRequest, SuspendResult } from "../approval.ts";
import type { Grant } from "../identity.ts";
import type { TakenInput } from "../inbox.ts";
import type {
  EndRequest,
  EndResult,
  OpenTurnView,
  RequestStopResult,
  RunningTurn,
  SettleForeignResult,
  StopRequest,
  SuspendedTurn,
  TurnRecord,
  TurnStore,
} from "../turn.ts";
import { absorbSpool } from "./memory-replay.ts";
import { checkPairing, unknownDrafts } from "./memory-drafts.ts";
import { storeError } from "./memory-rows.ts";
import type { SessionRow } from "./memory-rows.ts";
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
    } else if (
      turn.state === "suspended" ||
      drafts.length > 0 ||
      turn.outcome !== request.outcome ||
      turn.reason !== request.reason
    ) {
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

  async suspend(request: SuspendRequest): Promise<SuspendResult> {
    const state = this.#state;
    const { grant, turnId, usage, leavesProcesses } = request;
    const known = state.sessions.get(grant.sessionId);
    const own = known?.turns.get(turnId);
    const isOwn = own?.fencingToken === grant.fencingToken && own.holder.holderId === grant.holderId;
    // Repeated after an outcome that was not known: what stands is told again.
    if (known && isOwn && own.state === "suspended")
      return { kind: "suspended", turn: own, pendingCount: state.pendingCount(known) };
    if (!state.grantStands(grant))
      return known && own && hasBeenSuspended(own, request)
        ? { kind: "was-suspended", turn: own, pendingCount: state.pendingCount(known) }
        : { kind: "stale-token" };
    const { session, turn } = state.runningIn(grant.sessionId, turnId);
    const { stop, ...facts } = turn;
    const suspended: SuspendedTurn = {
      ...facts,
      state: "suspended",
      suspendedAtMs: state.wallMs(),
      approvals: this.#asked(session, turn, request),
      ...(usage ? { usage } : {}),
    };
    session.turns.set(turnId, suspended);
    state.noteProcesses(turn, leavesProcesses);
    state.free(grant.sessionId);
    if (!stop) return { kind: "suspended", turn: suspended, pendingCount: state.pendingCount(session) };
    const settled = state.stopSuspended(session, suspended, stop);
    return { kind: "stopped", settled, ...state.handOver(grant.sessionId) };
  }

  /** The calls that the turn waits for from now on; rejects what nobody could answer or go on with. */
  #asked(session: SessionRow, turn: RunningTurn, request: SuspendRequest): readonly AskedCall[] {
    const { turnId } = turn;
    const state = this.#state;
    const refused = (why: string): Error =>
      storeError("STORE_CONTRACT", `Turn ${turnId} of session ${session.sessionId} cannot be suspended: ${why}.`, {
        turnId,
      });
    if (!state.takenBy(session, turnId).some(wantsTurn)) throw refused("it holds no input");
    const calls = [...session.openCalls.values()].filter((call) => call.turnId === turnId);
    const facts = {
      open: new Map(calls.map(({ callId, name }) => [callId, name])),
      atMs: state.wallMs(),
      childOf: (childId: string) => {
        const child = state.sessions.get(childId);
        return child && { parent: child.parent, hasToldParent: child.hasToldParent };
      },
    };
    return withAsked(turn, request, facts, refused);
  }

  async answer(request: AnswerRequest): Promise<AnswerResult> {
    const { sessionId, callId, turnId } = request;
    const session = this.#state.sessions.get(sessionId);
    const turn = [...(session?.turns.values() ?? [])].at(-1);
    if (!session || !turn || turn.turnId !== (turnId ?? turn.turnId)) return { kind: "nothing-asked" };
    const { approvals = [] } = turn;
    const known = approvals.find((asked) => asked.callId === callId)?.answer;
    if (known) return { kind: "already-answered", answer: known };
    const answered = turn.state === "suspended" ? withAnswer(approvals, request, this.#state.wallMs()) : undefined;
    if (turn.state !== "suspended" || !answered) return { kind: "nothing-asked" };
    const asking: SuspendedTurn = { ...turn, approvals: answered };
    session.turns.set(turn.turnId, asking);
    return { kind: "recorded", turn: asking };
  }

  async read(sessionId: string, turnId: string): Promise<TurnRecord | undefined> {
    return this.#state.sessions.get(sessionId)?.turns.get(turnId);
  }

  async running(sessionId?: string): Promise<readonly OpenTurnView[]> {
    const views: OpenTurnView[] = [];
    for (const session of this.#state.sessions.values()) {
      const turn = this.#state.openTurn(session);
      if (!turn || (sessionId !== undefined && sessionId !== session.sessionId)) continue;
      const lease = this.#state.leaseView(session.sessionId);
      const overdue = isOverdue(turn, this.#state.wallMs()) ? { isOverdue: true as const } : {};
      views.push({ turn, ...(lease ? { lease } : {}), pendingCount: this.#state.pendingCount(session), ...overdue });
    }
    return views.toSorted((left, right) => left.turn.startedAtMs - right.turn.startedAtMs);
  }

  async requestStop(
    sessionId: string,
    stop: Omit<StopRequest, "atMs">,
    fencingToken?: number,
  ): Promise<RequestStopResult> {
    const session = this.#state.sessions.get(sessionId);
    const turn = this.#state.openTurn(session);
    if (!session || !turn || turn.fencingToken !== (fencingToken ?? turn.fencingToken))
      return { kind: "nothing-running" };
    if (turn.state === "suspended") {
      const settled = this.#state.stopSuspended(session, turn, { ...stop, atMs: this.#state.wallMs() });
      return { kind: "stopped", settled, ...this.#state.handOver(sessionId) };
    }
    const isStronger = turn.stop === undefined || (stop.hard && !turn.stop.hard);
    const asked = isStronger ? { ...turn, stop: { ...stop, atMs: this.#state.wallMs() } } : turn;
    session.turns.set(turn.turnId, asked);
    return { kind: "requested", turn: asked };
  }

  async stopOverdue(sessionId: string): ReturnType<TurnStore["stopOverdue"]> {
    const session = this.#state.sessions.get(sessionId);
    const turn = this.#state.suspendedTurn(session);
    const atMs = this.#state.wallMs();
    if (!session || !turn || !isOverdue(turn, atMs)) return { kind: "nothing-running" };
    const settled = this.#state.stopSuspended(session, turn, { ...overdueStop, atMs });
    return { kind: "stopped", settled, ...this.#state.handOver(sessionId) };
  }

  async stopRequest(sessionId: string, turnId: string): Promise<StopRequest | undefined> {
    const turn = this.#state.sessions.get(sessionId)?.turns.get(turnId);
    return turn?.state === "running" ? turn.stop : undefined;
  }
}
