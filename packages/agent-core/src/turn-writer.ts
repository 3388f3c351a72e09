import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type {
  EndRequest,
  EndResult,
  EntryBody,
  EntryDraft,
  SpoolStep,
  StateStore,
  SuspendRequest,
  SuspendResult,
} from "@turnkeeper/state-store";
import type { TurnLease } from "@turnkeeper/turn-lease";
import { withKnownOutcome } from "./unknown-outcome.ts";

export interface TurnWriterDeps {
  readonly store: StateStore;
  readonly host: Host;
}

/** The inputs that a step settles, beside those that its turn's end does. */
export type SettledInputs = NonNullable<SpoolStep["settledInputs"]>;

/** Codes that say nothing of the store's health: the caller's own fault, or met before a turn can begin. */
const notTheStore = /^STORE_(CONTRACT|DUPLICATE)$/;

/** Whether the store failed, for good or for longer than its patience. A refusal by token is none: it has a value. */
export function isStoreFailure(error: unknown): error is CodedError {
  return CodedError.is(error) && error.code.startsWith("STORE_") && !notTheStore.test(error.code);
}

function storeFailureOf(lost: AbortSignal): CodedError | undefined {
  const reason: unknown = lost.reason;
  const isUnconfirmed = CodedError.is(reason, "LEASE_LOST") && reason.context["cause"] === "unconfirmed";
  return isUnconfirmed && isStoreFailure(reason.cause) ? reason.cause : undefined;
}

/** What a person may miss of an entry that is lost. */
function naming(body: EntryBody): string {
  if (body.role === "tool") return `the result of ${body.name}`;
  if (body.role !== "assistant") return `a ${body.role} entry`;
  const calls = body.parts.flatMap((part) => (part.type === "tool-call" ? [part.name] : []));
  return calls.length > 0 ? `the call of ${calls.join(", ")}` : "an answer of the model";
}

/**
 * What one turn writes, and where it goes: to the store; from the first write on that the store fails to take, to the
 * spool, and never to the store again, so that the steps keep their order. Nothing is spooled under a lease that another
 * has now; a lease that ran out because the store could not be asked is the store's failure, and the token decides at
 * the replay.
 */
export class TurnWriter {
  readonly #deps: TurnWriterDeps;
  readonly #lease: TurnLease;
  readonly #turnId: string;
  readonly #lost: string[] = [];
  #failure: CodedError | undefined;
  #place: string | undefined;
  #spoolFailure: unknown;
  #hasEnded = false;

  constructor(deps: TurnWriterDeps, lease: TurnLease, turnId: string) {
    this.#deps = deps;
    this.#lease = lease;
    this.#turnId = turnId;
  }

  /** What the store failed with: from then on the turn has no side effect any more, and ends. */
  get failure(): CodedError | undefined {
    return this.#failure;
  }

  /** Where what the store did not take is now, in words for people. */
  get whereabouts(): string {
    const kept =
      this.#place === undefined
        ? ""
        : `What this turn had produced is kept in ${this.#place}, and comes back by itself with the next turn on session ${this.#lease.sessionId} once the store works again.`;
    if (this.#lost.length === 0) return kept;
    const why = this.#spoolFailure instanceof Error ? this.#spoolFailure.message : String(this.#spoolFailure);
    return `${kept === "" ? "" : `${kept} `}Lost are ${this.#lost.join(", ")}: they could not be kept either. ${why}`;
  }

  /**
   * One durable step of the turn: resolves once it is in the store or, where that failed, in the spool; `failure` tells
   * which. Throws `LEASE_LOST`, and what the store throws at a fault of the caller.
   */
  async append(entries: readonly EntryDraft[], settledInputs: SettledInputs = []): Promise<void> {
    if (this.#hasEnded && this.#failure) throw this.#failure;
    const { sessionId, grant } = this.#lease;
    const { host, store } = this.#deps;
    const settled = settledInputs.length === 0 ? {} : { settledInputs };
    const append = { grant, turnId: this.#turnId, entries, ...settled };
    const result = await this.#stored(() => withKnownOutcome(host, () => store.transcript.append(append)));
    if (result === undefined) return this.#keep(entries, settled);
    if (result.kind === "committed") return;
    throw new CodedError("LEASE_LOST", `Session ${sessionId} was taken over; this turn's writes are refused.`);
  }

  /** The turn's last write; nothing where the store failed to take it, and the spool was to keep it. */
  async end(request: Omit<EndRequest, "grant" | "turnId" | "release">): Promise<EndResult | undefined> {
    this.#hasEnded = true;
    const { grant } = this.#lease;
    const { host, store } = this.#deps;
    const full = { ...request, grant, turnId: this.#turnId, release: true };
    const write = (): Promise<EndResult> => withKnownOutcome(host, () => store.turns.end(full));
    const result = await this.#stored(() => this.#lease.release(write));
    if (result === undefined) await this.#keepEnd(request);
    return result?.kind === "lost" ? { kind: "stale-token" } : result;
  }

  /** Suspends the turn, which frees its lease; nothing where the store failed to take it. */
  async suspend(request: Omit<SuspendRequest, "grant" | "turnId">): Promise<SuspendResult | undefined> {
    const { grant } = this.#lease;
    const { host, store } = this.#deps;
    const full = { ...request, grant, turnId: this.#turnId };
    const write = (): Promise<SuspendResult> => withKnownOutcome(host, () => store.turns.suspend(full));
    const result = await this.#stored(() => this.#lease.release(write));
    return result?.kind === "lost" ? { kind: "stale-token" } : result;
  }

  /** The store's failure that the lease was lost by: it could be asked no more until the lease ran out. */
  failureOfLoss(): CodedError | undefined {
    const failure = storeFailureOf(this.#lease.lost);
    return failure && (this.#failure ??= failure);
  }

  /** The lease is gone with the store, and so the end is kept. */
  async endWithoutLease(request: Omit<EndRequest, "grant" | "turnId" | "release">): Promise<void> {
    this.#hasEnded = true;
    await this.#keepEnd(request);
  }

  /** Nothing once the store has failed; throws what is no failure of the store. */
  async #stored<Result>(write: () => Promise<Result>): Promise<Result | undefined> {
    if (this.#failure) return undefined;
    try {
      return await write();
    } catch (error) {
      if (!isStoreFailure(error)) throw error;
      this.#failure = error;
      return undefined;
    }
  }

  async #keepEnd(request: Omit<EndRequest, "grant" | "turnId" | "release">): Promise<void> {
    const { entries = [], outcome, reason, detail, stop, usage, leavesProcesses } = request;
    const end = {
      outcome,
      ...(reason === undefined ? {} : { reason }),
      ...(detail === undefined ? {} : { detail }),
      ...(stop === undefined ? {} : { stop }),
      ...(usage === undefined ? {} : { usage }),
      ...(leavesProcesses ? { leavesProcesses } : {}),
    };
    await this.#keep(entries, { end });
  }

  async #keep(
    entries: readonly EntryDraft[],
    { end, settledInputs }: Pick<SpoolStep, "end" | "settledInputs">,
  ): Promise<void> {
    const { lost, grant } = this.#lease;
    if (lost.aborted && storeFailureOf(lost) === undefined) return;
    try {
      const step = {
        grant,
        turnId: this.#turnId,
        entries,
        ...(settledInputs ? { settledInputs } : {}),
        ...(end ? { end } : {}),
      };
      ({ place: this.#place } = await this.#deps.store.spool.keep(step));
    } catch (error) {
      this.#spoolFailure = error;
      this.#lost.push(...entries.map(({ body }) => naming(body)), ...(end ? ["how the turn ended"] : []));
    }
  }
}
