import { wantsTurn } from "../child.ts";
import { firstWaiter } from "../decisions.ts";
import type { Grant } from "../identity.ts";
import type {
  InboxStore,
  InputRecord,
  Occupation,
  OfferRequest,
  OfferResult,
  PendingInput,
  TakenInput,
  WithdrawResult,
} from "../inbox.ts";
import { digestOf } from "../json.ts";
import type { LeaseView } from "../lease.ts";
import { checkParent, isUnbegun, tellParent } from "./memory-children.ts";
import type { SessionRow } from "./memory-rows.ts";
import type { MemoryState } from "./memory-state.ts";

/** An ended input that never reached a turn leaves its id free to be offered again. */
function mayBeOfferedAgain(input: InputRecord): boolean {
  return input.state === "settled" && input.turnId === undefined;
}

export class MemoryInbox implements InboxStore {
  readonly #state: MemoryState;

  constructor(state: MemoryState) {
    this.#state = state;
  }

  async offer(request: OfferRequest): Promise<OfferResult> {
    const { sessionId, inputId, text, onBusy, runner, parent, settings, queueLengthMax = Infinity } = request;
    checkParent(this.#state.sessions.get(sessionId), request);
    const lease = this.#holder(request);
    const suspended = this.#state.suspendedTurn(this.#state.sessions.get(sessionId));
    const told: Occupation = { ...(lease ? { lease } : {}), ...(suspended ? { suspended } : {}) };
    const known = this.#state.sessions.get(sessionId)?.inputs.get(inputId)?.record;
    const digest = digestOf(text);
    if (known && known.digest !== digest) return { kind: "conflict", input: known };

    const queue = this.#state.queueOf(this.#state.sessions.get(sessionId));
    const head = firstWaiter(queue, this.#state.now())?.input;
    const isBusy = lease !== undefined || suspended !== undefined || head !== undefined;
    const leaves = isBusy && (onBusy === "queue" || onBusy === "steer");
    const adopts = !isBusy || onBusy === "wait" || onBusy === "interrupt";
    if (known && !mayBeOfferedAgain(known))
      return { kind: "known", input: this.#adopt(known, adopts ? runner : undefined), ...told };
    if (isBusy && onBusy === "reject") return { kind: "busy", ...told, ...(head ? { head } : {}) };
    const waitingCount = queue.filter((queued) => wantsTurn(queued.input)).length;
    if (waitingCount >= queueLengthMax) return { kind: "full", waitingCount };

    const isNew = !this.#state.sessions.has(sessionId);
    const session = this.#state.ensureSession(sessionId);
    if (isNew) session.parent = parent;
    const input: PendingInput = {
      sessionId,
      inputId,
      seq: ++this.#state.lastInputSeq,
      text,
      digest,
      delivery: leaves && onBusy === "steer" ? "steer" : "turn",
      offeredAtMs: this.#state.wallMs(),
      ...(settings === undefined ? {} : { settings: structuredClone(settings) }),
      state: "pending",
      ...(leaves ? {} : { runner }),
    };
    session.inputs.set(inputId, { record: input });
    session.updatedAtMs = this.#state.wallMs();
    return { kind: "accepted", input, ...told };
  }

  #holder({ sessionId, deadGrant }: OfferRequest): LeaseView | undefined {
    const lease = this.#state.leaseView(sessionId);
    const isDead = deadGrant !== undefined && this.#state.grantStands(deadGrant);
    return lease === undefined || lease.standing === "expired" || isDead ? undefined : lease;
  }

  #adopt(known: InputRecord, runner: OfferRequest["runner"] | undefined): InputRecord {
    if (known.state !== "pending" || known.runner !== undefined || runner === undefined) return known;
    const adopted: PendingInput = { ...known, delivery: "turn", runner };
    this.#state.sessions.get(known.sessionId)?.inputs.set(known.inputId, { record: adopted });
    return adopted;
  }

  async read(sessionId: string, inputId: string): Promise<InputRecord | undefined> {
    return this.#state.sessions.get(sessionId)?.inputs.get(inputId)?.record;
  }

  async pending(sessionId: string): Promise<readonly PendingInput[]> {
    return this.#state.queueOf(this.#state.sessions.get(sessionId)).map((queued) => queued.input);
  }

  async waitingSessions(limit: number): Promise<readonly string[]> {
    const heads = [...this.#state.sessions.values()].flatMap((session) => {
      const head = this.#state.queueOf(session).find(({ input }) => wantsTurn(input));
      return head ? [head.input] : [];
    });
    return heads
      .toSorted((left, right) => left.seq - right.seq)
      .slice(0, limit)
      .map(({ sessionId }) => sessionId);
  }

  async takeSteers(grant: Grant, turnId: string): ReturnType<InboxStore["takeSteers"]> {
    if (!this.#state.grantStands(grant)) return { kind: "stale-token" };
    const { session } = this.#state.runningIn(grant.sessionId, turnId);
    const steers = this.#state
      .queueOf(session)
      .filter(({ input }) => input.delivery === "steer" && input.runner === undefined);
    const inputs: TakenInput[] = steers.map(({ input }) => this.#state.take(session, input.inputId, turnId));
    return { kind: "taken", inputs };
  }

  async withdraw(sessionId: string, inputId: string, end: "cancelled" | "expired"): Promise<WithdrawResult> {
    const session = this.#state.sessions.get(sessionId);
    const input = session?.inputs.get(inputId)?.record;
    if (!session || !input) return { kind: "unknown" };
    if (input.state === "taken") return { kind: "taken", turnId: input.turnId };
    if (input.state === "settled")
      return { kind: "settled", end: input.end, ...(input.turnId === undefined ? {} : { turnId: input.turnId }) };
    this.#state.settle(session, inputId, end);
    if (isUnbegun(this.#state, session)) tellParent(this.#state, session, { outcome: end });
    return { kind: "withdrawn" };
  }

  async abandon(sessionId: string, runnerId: string, inputId?: string): Promise<number> {
    const session = this.#state.sessions.get(sessionId);
    const isMeant = (id: string): boolean => inputId === undefined || id === inputId;
    const own = this.#state
      .queueOf(session)
      .filter(({ input }) => input.runner?.runnerId === runnerId && isMeant(input.inputId));
    for (const { input } of own) this.#orphan(session, input);
    return own.length;
  }

  #orphan(session: SessionRow | undefined, input: PendingInput): void {
    const { runner: _runner, ...orphan } = input;
    session?.inputs.set(input.inputId, { record: orphan });
  }
}
