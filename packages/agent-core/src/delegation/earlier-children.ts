import type { AwaitedChild, PendingInput, RunningTurn, StateStore } from "@turnkeeper/state-store";
import { storedEnd } from "../stored-end.ts";
import { childResult } from "./child-result.ts";
import type { ChildResult } from "./child-result.ts";

type ChildsNotice = PendingInput & { readonly child: NonNullable<PendingInput["child"]> };

/** Pending, since its result settles it: none where the child's end is not in the store, or its parent's turn is not its own any more. */
export async function noticesOf(
  store: StateStore,
  parentId: string,
  childId: string,
): Promise<readonly ChildsNotice[]> {
  const pending = await store.inbox.pending(parentId);
  return pending.flatMap((input) => (input.child?.sessionId === childId ? [{ ...input, child: input.child }] : []));
}

/** The name of a child's session, by the place that it has among those of its parent's turn. */
export const childIdOf = (turnId: string, number: number): string => `child-${turnId}-${number}`;

const numberOf = (sessionId: string): number => Number(/-(\d{1,6})$/.exec(sessionId)?.[1] ?? 0);

interface EarlierChild {
  readonly sessionId: string;
  /** Absent: its session was deleted. */
  readonly createdAtMs: number | undefined;
}

/** What became of a child whose call was given up over it. */
export interface EndedChild {
  readonly result: ChildResult;
  readonly noticeId: string;
  readonly durationMs: number;
  /** It ended since the turn was suspended last: nobody was told of it before. */
  readonly isNews: boolean;
}

/**
 * The children that a turn made before it was suspended, whoever runs it now: neither a pause nor another process gives
 * it their places back, and a call that is run again finds its own in the order in which it made them.
 */
export class EarlierChildren {
  readonly #store: StateStore;
  readonly #parentId: string;
  readonly #byCall: ReadonlyMap<string, readonly EarlierChild[]>;
  /** What each call was suspended over last. */
  readonly #waits: ReadonlyMap<string, AwaitedChild>;
  /** The places that they have. */
  readonly numbers: readonly number[];

  private constructor(
    store: StateStore,
    parentId: string,
    numbers: readonly number[],
    byCall: ReadonlyMap<string, readonly EarlierChild[]>,
    waits: ReadonlyMap<string, AwaitedChild>,
  ) {
    this.#store = store;
    this.#parentId = parentId;
    this.numbers = numbers;
    this.#byCall = byCall;
    this.#waits = waits;
  }

  static async read(store: StateStore, turn: RunningTurn, maxChildren: number): Promise<EarlierChildren> {
    const { sessionId: parentId, turnId, approvals = [] } = turn;
    const awaited = new Map(
      approvals.flatMap(({ callId, child }) => (child ? [[child.sessionId, callId] as const] : [])),
    );
    const numbers: number[] = [];
    const byCall = new Map<string, EarlierChild[]>();
    // More than there may be now, where the limit was lowered meanwhile.
    const last = Math.max(maxChildren, ...[...awaited.keys()].map(numberOf));
    for (let number = 1; number <= last; number++) {
      const sessionId = childIdOf(turnId, number);
      const record = await store.sessions.read(sessionId);
      // One that was deleted meanwhile has been told as ended.
      const callId = record?.parent?.callId ?? awaited.get(sessionId);
      if (callId === undefined) continue;
      numbers.push(number);
      byCall.set(callId, [...(byCall.get(callId) ?? []), { sessionId, createdAtMs: record?.createdAtMs }]);
    }
    const waits = approvals.flatMap(({ callId, child }) => (child ? [[callId, child] as const] : []));
    return new EarlierChildren(store, parentId, numbers, byCall, new Map(waits));
  }

  /** What became of the child that the call made at this place in its order; `goes on` where no end of it was told. */
  async ended(callId: string, index: number): Promise<EndedChild | { readonly goesOn: string } | undefined> {
    const { sessionId, createdAtMs } = this.#byCall.get(callId)?.[index] ?? {};
    if (sessionId === undefined) return undefined;
    const [notice] = await noticesOf(this.#store, this.#parentId, sessionId);
    if (!notice) return { goesOn: sessionId };
    const { turnId, outcome, reason } = notice.child;
    const stored = turnId === undefined ? {} : await storedEnd(this.#store, { sessionId, turnId, end: outcome });
    const told = { text: "", reason, ...stored, outcome: outcome === "expired" ? ("cancelled" as const) : outcome };
    const durationMs = Math.max(0, notice.offeredAtMs - (createdAtMs ?? notice.offeredAtMs));
    const wait = this.#waits.get(callId);
    const isNews = !wait || wait.sessionId === sessionId || notice.offeredAtMs > wait.sinceMs;
    return { result: childResult(sessionId, told), noticeId: notice.inputId, durationMs, isNews };
  }
}
