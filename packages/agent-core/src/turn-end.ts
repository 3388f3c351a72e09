import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { StateStore, TurnRecord } from "@turnkeeper/state-store";
import type { TurnLease } from "@turnkeeper/turn-lease";
import type { TurnEnding } from "./turn-ending.ts";
import type { ConductedEnd, TurnDeps } from "./turn-machinery.ts";
import type { TurnWriter } from "./turn-writer.ts";

/** The lease is gone and with it the right to write: what the turn had shown is told, and left to its successor. */
export function leaseLost({ text, usage }: TurnEnding): TurnEnding {
  return {
    outcome: "interrupted",
    reason: "lease-lost",
    detail:
      "The lease of this session was lost: the turn was stopped to protect the transcript, and whoever holds the session now settles it.",
    ...(text === undefined ? {} : { text }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** The store failed, whatever stopped the turn for it. */
function failedBy(failure: CodedError | undefined, { text, usage }: TurnEnding): TurnEnding {
  return {
    outcome: "failed",
    reason: failure?.code ?? "INTERNAL",
    detail: failure?.message ?? "",
    ...(text === undefined ? {} : { text }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** The same as it is told, with what became of what the turn had produced. */
function storeFailed({ failure, whereabouts }: TurnWriter, wanted: TurnEnding): TurnEnding {
  const ending = failedBy(failure, wanted);
  return { ...ending, detail: `${ending.detail ?? ""} ${whereabouts}`.trim() };
}

export interface EndingTurn {
  readonly turnId: string;
  readonly writer: TurnWriter;
  /** Processes of it, or of turns before it, could not be ended. */
  readonly leavesProcesses: boolean;
}

/**
 * Writes a turn's end and lets go of its lease: to the store, to the spool where that fails, nowhere where another has the
 * session. Never rejects.
 */
export async function endTurn(
  deps: TurnDeps,
  lease: TurnLease,
  { turnId, writer, leavesProcesses }: EndingTurn,
  wanted: TurnEnding,
): Promise<ConductedEnd> {
  const left = leavesProcesses ? { leavesProcesses } : {};
  if (lease.lost.aborted) {
    const failure = writer.failureOfLoss();
    if (failure) {
      const { text: _text, ...stored } = failedBy(failure, wanted);
      await writer.endWithoutLease({ ...stored, ...left, entries: wanted.entries ?? [] });
    }
    await lease.release();
    if (failure) return { ending: storeFailed(writer, wanted) };
    const ending = leaseLost(wanted);
    return { ending: { ...ending, detail: `${ending.detail ?? ""} ${writer.whereabouts}`.trim() } };
  }
  const write = async (ending: TurnEnding): Promise<ConductedEnd | undefined> => {
    const { text: _text, ...stored } = ending;
    const result = await writer.end({ ...stored, ...left });
    if (result === undefined) return undefined;
    if (result.kind !== "ended") return { ending: leaseLost(ending) };
    return { ending, handOver: result, revision: result.revision };
  };
  try {
    return (await write(wanted)) ?? (await endWithoutStore(deps, lease, turnId, writer, wanted));
  } catch (error) {
    const failure: TurnEnding = {
      ...(wanted.text === undefined ? {} : { text: wanted.text }),
      outcome: "failed",
      reason: CodedError.is(error) ? error.code : "INTERNAL",
      detail: messageOf(error),
    };
    // Entries that the store refuses must not keep the turn open: end it without them, and say why.
    const isRefused = CodedError.is(error, "STORE_CONTRACT") || CodedError.is(error, "ENTRY_CONFLICT");
    const conducted = isRefused ? await write(failure).catch(() => undefined) : undefined;
    if (conducted) return conducted;
    // The store does not take the end: let go, so that whoever finds the store working settles this turn.
    await lease[Symbol.asyncDispose]().catch(() => {});
    return { ending: failure };
  }
}

/**
 * The end is in the spool. One release is tried: a store that works again takes the spool back with it, and then
 * nothing was lost that anybody needs to know of. Else the lease is let go, for whoever finds the store working.
 */
async function endWithoutStore(
  { store }: TurnDeps,
  lease: TurnLease,
  turnId: string,
  writer: TurnWriter,
  wanted: TurnEnding,
): Promise<ConductedEnd> {
  const releasing = lease.release().catch(() => undefined);
  await lease[Symbol.asyncDispose]().catch(() => {});
  const released = await releasing;
  const turn = released?.kind === "released" ? await readTurn(store, lease.sessionId, turnId) : undefined;
  const isBack = turn?.state === "ended" && turn.outcome === wanted.outcome && turn.reason === wanted.reason;
  if (released?.kind !== "released" || !isBack) return { ending: storeFailed(writer, wanted) };
  return { ending: wanted, handOver: released };
}

/** Nothing, where the store fails again: then it is told as failed. */
async function readTurn(store: StateStore, sessionId: string, turnId: string): Promise<TurnRecord | undefined> {
  try {
    return await store.turns.read(sessionId, turnId);
  } catch (error) {
    if (CodedError.is(error)) return undefined;
    throw error;
  }
}
