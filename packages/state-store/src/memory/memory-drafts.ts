/** Which drafts a session takes: each key once, and calls and results in pairs. Nothing is written here. */
import { callsOf } from "../entry.ts";
import type { EntryDraft } from "../entry.ts";
import { digestOf } from "../json.ts";
import { storeError } from "./memory-rows.ts";
import type { SessionRow } from "./memory-rows.ts";

export const callKey = (turnId: string, callId: string): string => JSON.stringify([turnId, callId]);

/** The drafts that are not stored yet, each key once; rejects with `ENTRY_CONFLICT` on a key with other content. */
export function unknownDrafts(session: SessionRow, drafts: readonly EntryDraft[]): EntryDraft[] {
  const inThisStep = new Map<string, string>();
  return drafts.filter((draft) => {
    const digest = digestOf(draft.body);
    const known = session.digestByKey.get(draft.key) ?? inThisStep.get(draft.key);
    inThisStep.set(draft.key, digest);
    if (known === undefined) return true;
    if (known === digest) return false;
    throw storeError(
      "ENTRY_CONFLICT",
      `Entry ${draft.key} of session ${session.sessionId} is stored with other content.`,
      { key: draft.key },
    );
  });
}

/** Refuses calls and results that would break the pairing, before anything is written (PAIR-1). */
export function checkPairing(session: SessionRow, turnId: string, drafts: readonly EntryDraft[]): void {
  const fault = pairingFault(session, turnId, drafts);
  if (fault) throw storeError("STORE_CONTRACT", fault.problem, { callId: fault.callId });
}

/** What would break the pairing of the turn's calls and results; nothing where all of it pairs. */
export function pairingFault(
  session: SessionRow,
  turnId: string,
  drafts: readonly EntryDraft[],
): { readonly callId: string; readonly problem: string } | undefined {
  const open = new Set(session.openCalls.keys());
  const opened = new Set(
    session.entries
      .filter((entry) => entry.turnId === turnId && !entry.late)
      .flatMap((entry) => callsOf(entry.body).map((call) => call.callId)),
  );
  for (const { body } of drafts) {
    for (const { callId } of callsOf(body)) {
      if (opened.has(callId)) return { callId, problem: `Tool call ${callId} is stored twice in turn ${turnId}.` };
      opened.add(callId);
      open.add(callKey(turnId, callId));
    }
    if (body.role !== "tool" || open.delete(callKey(turnId, body.callId))) continue;
    const { callId } = body;
    return { callId, problem: `A result for tool call ${callId} of turn ${turnId} has no open call.` };
  }
  return undefined;
}
