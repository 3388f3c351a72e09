/**
 * Makes a whole of one session's transcript: the order holds, a message that was taken is there, calls and results are
 * paired, and no summary that was lost hides what it replaced. What is made up stands in the gaps that lost entries
 * left, so the order of what was brought stays as it was.
 */
import { digestOf, joinFacts, sessionFactsOf, takenEntry } from "@turnkeeper/state-store";
import type { EntryBody } from "@turnkeeper/state-store";
import { CallPairing } from "./call-pairing.ts";
import type { EntryRow, RecoveredTranscript } from "./recovered-transcript.ts";

/** The indexes of a longest subsequence that never falls. */
function longestOrder(values: readonly number[]): Set<number> {
  /** For each length, the index of the smallest value that ends such a subsequence. */
  const ends: number[] = [];
  const before: number[] = [];
  for (const [index, value] of values.entries()) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((values[ends[middle] ?? 0] ?? 0) <= value) low = middle + 1;
      else high = middle;
    }
    before[index] = low > 0 ? (ends[low - 1] ?? -1) : -1;
    ends[low] = index;
  }
  const kept = new Set<number>();
  for (let index = ends.at(-1) ?? -1; index >= 0; index = before[index] ?? -1) kept.add(index);
  return kept;
}

/** An input whose message is not in the transcript, with the turn that took it. */
interface LostMessage extends Omit<EntryRow, "seq" | "archived"> {
  readonly input_id: string;
  readonly text: string;
}

export class TranscriptMending {
  readonly #transcript: RecoveredTranscript;

  constructor(transcript: RecoveredTranscript) {
    this.#transcript = transcript;
  }

  run(): void {
    const { findings } = this.#transcript;
    const toldBefore = findings.toldCount;
    this.#tellGaps();
    this.#mendOrder();
    this.#bringMessages();
    this.#bringInputs();
    new CallPairing(this.#transcript).run();
    this.#mendSummaries();
    const hasGrown = this.#count();
    if (hasGrown || findings.toldCount > toldBefore) this.#derive();
  }

  #tellGaps(): void {
    const { rows, no, id, findings } = this.#transcript;
    const gaps = rows.all<{ from_seq: number; through_seq: number }>(
      `SELECT before + 1 AS from_seq, seq - 1 AS through_seq FROM (
         SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS before FROM (
           SELECT seq FROM entry WHERE session_no = ?
           UNION ALL SELECT last_seq + 1 FROM session WHERE session_no = ?))
       WHERE seq > before + 1`,
      no,
      no,
    );
    for (const { from_seq, through_seq } of gaps)
      findings.miss({ session: id, fromSeq: from_seq, throughSeq: through_seq });
  }

  /**
   * Tokens grow along a transcript (LEASE-2), so an entry that breaks the order has a number that rotted, in itself or in
   * its turn. The fewest that can be are marked late: shown, and no model context.
   */
  #mendOrder(): void {
    const { rows, no } = this.#transcript;
    const disorder = rows.get(
      `SELECT 1 FROM (SELECT fencing_token AS token, max(fencing_token) OVER (ORDER BY seq) AS high
         FROM entry JOIN turn USING (session_no, turn_id) WHERE session_no = ? AND late = 0) WHERE token < high LIMIT 1`,
      no,
    );
    if (!disorder) return;
    const entries = rows.all<{ seq: number; token: number }>(
      `SELECT seq, fencing_token AS token FROM entry JOIN turn USING (session_no, turn_id)
       WHERE session_no = ? AND late = 0 ORDER BY seq`,
      no,
    );
    const kept = longestOrder(entries.map(({ token }) => token));
    for (const [index, { seq }] of entries.entries())
      if (!kept.has(index)) this.#transcript.markLate(seq, "breaks the order of the fencing tokens");
  }

  /** The message that an input became, where the input is there and the entry is not. A child's notice may have none. */
  #bringMessages(): void {
    const { rows, no } = this.#transcript;
    const lost = rows.all<LostMessage>(
      `SELECT input_id, text, turn_id, offered_at_ms AS at_ms, outcome, fencing_token AS token
       FROM input JOIN turn USING (session_no, turn_id)
       WHERE session_no = ? AND child IS NULL AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.session_no = input.session_no
         AND (key = 'input/' || input_id OR (key > 'input/' || input_id || '/' AND key < 'input/' || input_id || '0')))
       ORDER BY fencing_token, input.seq`,
      no,
    );
    for (const message of lost) {
      const { input_id, text } = message;
      const draft = takenEntry({ inputId: input_id, text });
      const place = this.#placeOf(message);
      const last = rows.get<{ seq: number | null }>("SELECT max(seq) AS seq FROM entry WHERE session_no = ?", no);
      const seq = place?.seq ?? 1 + (last?.seq ?? 0);
      this.#transcript.insert({ ...message, archived: place?.archived ?? 0, seq }, draft.key, draft.body);
      this.#transcript.tell(
        `the message of input ${input_id} was lost from the transcript and stands there again, from the inbox`,
      );
      if (!place) this.#transcript.markLate(seq, "has no place left among the entries of its time");
    }
  }

  /** Where a lost message may stand: before what its turn said, else between the turns before and after it. */
  #placeOf({ turn_id, token }: LostMessage): Pick<EntryRow, "seq" | "archived"> | undefined {
    const { rows, no } = this.#transcript;
    const next =
      this.#first(turn_id) ??
      rows.get<EntryRow>(
        `SELECT seq, turn_id, at_ms, archived, outcome, fencing_token AS token FROM entry JOIN turn USING (session_no, turn_id)
         WHERE session_no = ? AND fencing_token > ? AND late = 0 ORDER BY seq LIMIT 1`,
        no,
        token,
      );
    if (!next) {
      const last = rows.get<{ seq: number | null }>("SELECT max(seq) AS seq FROM entry WHERE session_no = ?", no);
      return { seq: 1 + (last?.seq ?? 0), archived: 0 };
    }
    const seq = this.#transcript.gapBefore(next, "lowest");
    return seq === undefined ? undefined : { seq, archived: next.archived };
  }

  #first(turnId: string): EntryRow | undefined {
    const { rows, no } = this.#transcript;
    return rows.get<EntryRow>(
      `SELECT seq, turn_id, at_ms, archived, outcome, fencing_token AS token FROM entry JOIN turn USING (session_no, turn_id)
       WHERE session_no = ? AND turn_id = ? AND late = 0 ORDER BY seq LIMIT 1`,
      no,
      turnId,
    );
  }

  /** The input that a message came from, where the message is there and the input is not: its id stays used (INBOX-2). */
  #bringInputs(): void {
    const { rows, no } = this.#transcript;
    const known = rows.all<{ body: string; turn_id: string; at_ms: number }>(
      `SELECT body, turn_id, at_ms FROM entry WHERE session_no = ? AND key >= 'input/' AND key < 'input0'
         AND NOT EXISTS (SELECT 1 FROM input WHERE input.session_no = entry.session_no AND input_id = substr(entry.key, 7))
       ORDER BY seq`,
      no,
    );
    for (const { body, turn_id, at_ms } of known) {
      const message = JSON.parse(body) as EntryBody;
      if (message.role !== "user" || message.inputId === undefined) continue;
      const inserted = rows.run(
        `INSERT INTO input (session_no, input_id, seq, text, digest, delivery, offered_at_ms, turn_id, ended_as, ended_at_ms)
         SELECT ?, ?, 1 + max((SELECT max(last_input_seq) FROM store), coalesce((SELECT max(seq) FROM input), 0)),
           ?, ?, 'turn', ?, turn_id, outcome, ended_at_ms FROM turn WHERE session_no = ? AND turn_id = ?
         ON CONFLICT DO NOTHING`,
        no,
        message.inputId,
        message.text,
        digestOf(message.text),
        at_ms,
        no,
        turn_id,
      );
      if (inserted > 0)
        this.#transcript.tell(`the record of input ${message.inputId} was lost and is made up from its message`);
    }
  }

  /**
   * What is archived follows from the summaries that are there: one that was lost hides nothing, and what it had replaced
   * is model context again.
   */
  #mendSummaries(): void {
    const { rows, no } = this.#transcript;
    const moved = rows.run(
      "UPDATE entry SET place = seq WHERE session_no = ? AND place <> seq AND body ->> '$.role' <> 'summary'",
      no,
    );
    const newest = rows.get<{ seq: number; place: number }>(
      "SELECT seq, place FROM entry WHERE session_no = ? AND place < seq AND late = 0 ORDER BY place DESC, seq DESC LIMIT 1",
      no,
    ) ?? { seq: 0, place: 0 };
    const changed = rows.run(
      `UPDATE entry SET archived = 1 - archived
       WHERE session_no = ? AND late = 0 AND archived <> (place <= ? AND seq <> ?)`,
      no,
      newest.place,
      newest.seq,
    );
    const followed = rows.run(
      "UPDATE session SET archived_through_seq = ? WHERE session_no = ? AND archived_through_seq <> ?",
      newest.place,
      no,
      newest.place,
    );
    // A context with a summary in it has an order of its own, which the count turns on.
    rows.run(
      `UPDATE session SET compaction_count = max(compaction_count,
         (SELECT count(*) FROM entry WHERE session_no = ? AND place < seq)) WHERE session_no = ?`,
      no,
      no,
    );
    if (moved + changed + followed === 0) return;
    this.#transcript.tell(
      `${changed} entries changed between model context and archive, as the summaries that are there have it`,
    );
  }

  /** A session's last entry is at least the last that is there; its number never falls. */
  #count(): boolean {
    const { rows, no } = this.#transcript;
    const changes = rows.run(
      `UPDATE session SET last_seq = seq, revision = revision + 1
       FROM (SELECT max(seq) AS seq FROM entry WHERE session_no = ?) WHERE session_no = ? AND last_seq < seq`,
      no,
      no,
    );
    return changes > 0;
  }

  /** What a list tells of the session, from the entries that are there. */
  #derive(): void {
    const { rows, no } = this.#transcript;
    let facts = sessionFactsOf([]);
    const entries = rows.iterate<{ body: string; at_ms: number }>(
      "SELECT body, at_ms FROM entry WHERE session_no = ? ORDER BY seq",
      no,
    );
    for (const { body, at_ms } of entries) {
      facts = joinFacts(facts, sessionFactsOf([{ body: JSON.parse(body) as EntryBody, atMs: at_ms }]));
    }
    rows.run(
      `UPDATE session SET first_text = ?, last_entry_at_ms = ?, last_role = ?, last_tool = ?, tool_call_count = ?,
         input_tokens = ?, output_tokens = ?, turn_count = (SELECT count(*) FROM turn WHERE turn.session_no = session.session_no)
       WHERE session_no = ?`,
      facts.firstText ?? null,
      facts.lastEntry?.atMs ?? null,
      facts.lastEntry?.role ?? null,
      facts.lastEntry?.toolName ?? null,
      facts.toolCallCount,
      facts.inputTokens,
      facts.outputTokens,
      no,
    );
  }
}
