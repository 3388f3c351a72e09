/** The turns that recovery itself ends: which, and what the next grant is told of them. */
import { withPredecessor } from "@turnkeeper/state-store";
import type { Holder, Predecessor } from "@turnkeeper/state-store";
import type { Connection } from "../connection.ts";
import { parseJson } from "../json-column.ts";
import type { Findings } from "./findings.ts";
import { idOf } from "./session-names.ts";

export const lostDetail = "Rebuilt by recovery: the turn's own record was lost with a damaged part of the store.";
const overtakenDetail = "Ended by recovery: a later grant had followed, or its lease was free.";

interface EndingParts {
  readonly rows: Connection;
  readonly findings: Findings;
}

/** A turn runs under the grant that holds the lease, or it does not run. A suspended one needs no lease. */
export function endOvertaken({ rows, findings }: EndingParts): void {
  const overtaken = rows.all<{ turn_no: number; session_no: number; turn_id: string }>(
    `SELECT turn_no, session_no, turn_id FROM turn JOIN session USING (session_no) LEFT JOIN lease USING (session_id)
     WHERE outcome IS NULL AND suspended_at_ms IS NULL
       AND (lease.holder_id IS NULL OR lease.fencing_token <> turn.fencing_token)`,
  );
  for (const { turn_no, session_no, turn_id } of overtaken) {
    rows.run(
      `UPDATE turn SET stop = NULL, outcome = 'interrupted', reason = 'crashed', detail = ?,
         ended_at_ms = max(started_at_ms, (SELECT updated_at_ms FROM session WHERE session.session_no = turn.session_no))
       WHERE turn_no = ?`,
      overtakenDetail,
      turn_no,
    );
    findings.mend(idOf(rows, session_no), `turn ${turn_id} ran without its lease and is ended as interrupted`);
  }
}

/**
 * No turn that recovery ends has ended itself: what it started may still run, and the next grant is told, as after any
 * crash (rule 7.14). Without a detail it was one of two that ran in a session.
 */
export function rememberEnded({ rows }: EndingParts): void {
  const ended = rows.all<{ session_id: string; turn_id: string; holder: string; predecessors: string | null }>(
    `SELECT session_id, turn_id, turn.holder AS holder, lease.predecessors AS predecessors
     FROM turn JOIN session USING (session_no) JOIN lease USING (session_id)
     WHERE outcome = 'interrupted' AND reason = 'crashed' AND (detail IN (?, ?) OR detail IS NULL)
     ORDER BY turn.fencing_token, turn_no`,
    lostDetail,
    overtakenDetail,
  );
  const known = new Map<string, readonly Predecessor[]>();
  for (const { session_id, turn_id, holder, predecessors } of ended) {
    const before =
      known.get(session_id) ??
      (predecessors ? parseJson<readonly Predecessor[]>(predecessors, "lease.predecessors") : undefined);
    if (before?.some(({ turnId }) => turnId === turn_id)) continue;
    const turn = { turnId: turn_id, holder: parseJson<Holder>(holder, "turn.holder") };
    known.set(session_id, withPredecessor(before, turn));
  }
  for (const [sessionId, predecessors] of known)
    rows.run("UPDATE lease SET predecessors = ? WHERE session_id = ?", JSON.stringify(predecessors), sessionId);
}
