import { digestOf, firstWaiter } from "@turnkeeper/state-store";
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
import { checkParent, isUnbegun, tellParent } from "./child-sessions.ts";
import {
  adoptInput,
  inputRecord,
  orphanInputs,
  pendingCount,
  pendingInput,
  queueOf,
  settleInput,
} from "./input-rows.ts";
import type { InputRow } from "./input-rows.ts";
import { toJson } from "./json-column.ts";
import { isGrantOf } from "./lease-rows.ts";
import type { RunnerVouching } from "./runner-vouching.ts";
import type { Server } from "./server.ts";
import type { SessionImage } from "./session-image.ts";
import { Numbered } from "./session-writes.ts";
import type { SessionWrites } from "./session-writes.ts";
import { mustRun, takeInput } from "./settlement.ts";
import { suspendedTurnOf } from "./turn-rows.ts";

/** An ended input that never reached a turn leaves its id free to be offered again. */
function mayBeOfferedAgain(input: InputRecord): boolean {
  return input.state === "settled" && input.turnId === undefined;
}

/** Who keeps the session busy; a lease that ran out, or that the caller proved dead, does not. */
function busyHolder(image: SessionImage, { deadGrant }: OfferRequest): LeaseView | undefined {
  const lease = image.leaseView;
  const isDead = deadGrant !== undefined && isGrantOf(image.loadedLease, deadGrant);
  return lease === undefined || lease.standing === "expired" || isDead ? undefined : lease;
}

/** An orphan that is offered again gets the offerer as its runner (INBOX-2). */
function adopt(image: SessionImage, row: InputRow, known: InputRecord, runner: OfferRequest["runner"]): InputRecord {
  if (known.state !== "pending" || known.runner !== undefined) return known;
  adoptInput(image, row, runner);
  return { ...known, delivery: "turn", runner };
}

function offer(image: SessionImage, request: OfferRequest): OfferResult | Numbered<OfferResult> {
  const { sessionId, inputId, text, onBusy, runner, parent, settings, queueLengthMax = Infinity } = request;
  checkParent(image, parent);
  const lease = busyHolder(image, request);
  const suspended = suspendedTurnOf(image);
  const told: Occupation = { ...(lease ? { lease } : {}), ...(suspended ? { suspended } : {}) };
  const row = image.input(inputId);
  const known = row && inputRecord(sessionId, row);
  const digest = digestOf(text);
  if (known && known.digest !== digest) return { kind: "conflict", input: known };

  const queue = queueOf(image);
  const head = queue.length > 0 ? firstWaiter(queue, image.now)?.input : undefined;
  const isBusy = lease !== undefined || suspended !== undefined || head !== undefined;
  const leaves = isBusy && (onBusy === "queue" || onBusy === "steer");
  const adopts = !isBusy || onBusy === "wait" || onBusy === "interrupt";
  if (row && known && !mayBeOfferedAgain(known))
    return { kind: "known", input: adopts ? adopt(image, row, known, runner) : known, ...told };
  if (isBusy && onBusy === "reject") return { kind: "busy", ...told, ...(head ? { head } : {}) };
  const waitingCount = pendingCount(image);
  if (waitingCount >= queueLengthMax) return { kind: "full", waitingCount };

  const delivery = leaves && onBusy === "steer" ? "steer" : "turn";
  image.touch(parent);
  image.offer({
    input_id: inputId,
    seq: null,
    text: JSON.stringify(text),
    digest,
    delivery,
    offered_at_ms: image.atMs,
    runner: leaves ? null : JSON.stringify(runner),
    runner_until_clock_ms: null,
    woken_clock_ms: null,
    turn_id: null,
    ended_as: null,
    ended_at_ms: null,
    child: null,
    settings: toJson(settings),
  });
  const facts = {
    sessionId,
    inputId,
    text,
    digest,
    delivery,
    offeredAtMs: image.atMs,
    ...(settings === undefined ? {} : { settings }),
    state: "pending",
  } as const;
  return new Numbered(inputId, (seq): OfferResult => {
    const input: PendingInput = { ...facts, seq, ...(leaves ? {} : { runner }) };
    return { kind: "accepted", input, ...told };
  });
}

function takeSteers(image: SessionImage, grant: Grant, turnId: string): Awaited<ReturnType<InboxStore["takeSteers"]>> {
  if (!isGrantOf(image.lease, grant)) return { kind: "stale-token" };
  mustRun(image, grant, turnId);
  const steers = queueOf(image).filter(({ input }) => input.delivery === "steer" && input.runner === undefined);
  return { kind: "taken", inputs: steers.map(({ input }) => takeInput(image, input, turnId)) };
}

function withdraw(image: SessionImage, inputId: string, end: "cancelled" | "expired"): WithdrawResult {
  const row = image.input(inputId);
  if (!row) return { kind: "unknown" };
  const input = inputRecord(image.sessionId, row);
  if (input.state === "taken") return { kind: "taken", turnId: input.turnId };
  if (input.state === "settled")
    return { kind: "settled", end: input.end, ...(input.turnId === undefined ? {} : { turnId: input.turnId }) };
  settleInput(image, inputId, end);
  if (isUnbegun(image)) tellParent(image, { outcome: end }, (parentId) => image.other(parentId));
  return { kind: "withdrawn" };
}

export class PostgresInbox implements InboxStore {
  readonly #server: Server;
  readonly #writes: SessionWrites;
  readonly #vouching: RunnerVouching;

  constructor(server: Server, writes: SessionWrites, vouching: RunnerVouching) {
    this.#server = server;
    this.#writes = writes;
    this.#vouching = vouching;
  }

  async offer(request: OfferRequest): Promise<OfferResult> {
    const { sessionId, inputId, runner } = request;
    const result = await this.#writes.write<OfferResult>({
      sessionId,
      attempt: `store an input of session ${sessionId}`,
      kind: "ordinary",
      reading: { inputIds: [inputId] },
      decide: (image) => offer(image, request),
    });
    const input = result.kind === "accepted" || result.kind === "known" ? result.input : undefined;
    const isOwn = input?.state === "pending" && input.runner?.runnerId === runner.runnerId;
    if (isOwn) this.#vouching.begin({ sessionId, inputId, runnerId: runner.runnerId });
    return result;
  }

  async read(sessionId: string, inputId: string): Promise<InputRecord | undefined> {
    const [row] = await this.#inputs(`read an input of session ${sessionId}`, sessionId, "input_id = $2", inputId);
    return row && inputRecord(sessionId, row);
  }

  async pending(sessionId: string): Promise<readonly PendingInput[]> {
    const isPending = "turn_id IS NULL AND ended_as IS NULL";
    const rows = await this.#inputs(`read the queue of session ${sessionId}`, sessionId, isPending);
    return rows.map((row) => pendingInput(sessionId, row));
  }

  async waitingSessions(limit: number): Promise<readonly string[]> {
    const { schema } = this.#server;
    const rows = await this.#server.read<{ session_id: string }>(
      "read which sessions wait",
      `SELECT session_id FROM ${schema}.input JOIN ${schema}.session USING (session_no)
       WHERE turn_id IS NULL AND ended_as IS NULL AND child IS NULL
       GROUP BY session_id ORDER BY min(seq) LIMIT $1`,
      [Math.max(0, limit)],
    );
    return rows.map((row) => row.session_id);
  }

  async #inputs(
    attempt: string,
    sessionId: string,
    condition: string,
    ...values: readonly string[]
  ): Promise<readonly InputRow[]> {
    const { schema } = this.#server;
    const rows = await this.#server.read<{ input: InputRow; is_gone: boolean | null }>(
      attempt,
      `SELECT row_to_json(input) AS input, runner_until_clock_ms <= ${schema}.clock_ms() AS is_gone
       FROM ${schema}.input JOIN ${schema}.session USING (session_no)
       WHERE session_id = $1 AND ${condition} ORDER BY seq`,
      [sessionId, ...values],
    );
    return rows.map(({ input, is_gone }) => ({ ...input, runner_is_gone: is_gone }));
  }

  takeSteers(grant: Grant, turnId: string): ReturnType<InboxStore["takeSteers"]> {
    return this.#writes.write({
      sessionId: grant.sessionId,
      attempt: `take the steers of session ${grant.sessionId}`,
      kind: "turn-data",
      reading: { turnIds: [turnId] },
      decide: (image) => takeSteers(image, grant, turnId),
    });
  }

  withdraw(sessionId: string, inputId: string, end: "cancelled" | "expired"): Promise<WithdrawResult> {
    return this.#writes.write({
      sessionId,
      attempt: `withdraw an input of session ${sessionId}`,
      kind: "ordinary",
      reading: { inputIds: [inputId] },
      decide: (image) => withdraw(image, inputId, end),
    });
  }

  abandon(sessionId: string, runnerId: string, inputId?: string): Promise<number> {
    return this.#writes.write({
      sessionId,
      attempt: `abandon inputs of session ${sessionId}`,
      kind: "ordinary",
      isRepeatable: true,
      decide: (image) => orphanInputs(image, runnerId, inputId),
    });
  }
}
