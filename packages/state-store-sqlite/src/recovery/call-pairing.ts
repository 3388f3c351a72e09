/**
 * Pairs the calls and results of a recovered transcript (PAIR-1): a call whose result is lost gets one that says so, a
 * result whose call is lost gets a message that makes it, each in the gap that the lost entry left.
 */
import { callsOf } from "@turnkeeper/state-store";
import type { EntryBody, ToolBody } from "@turnkeeper/state-store";
import type { EntryRow, RecoveredTranscript } from "./recovered-transcript.ts";

const lostMessage = "(The message that stood here was lost with a damaged part of the store.)";
const lostResult =
  "Outcome unknown: the result of this call was lost with a damaged part of the store. Check before repeating it.";

interface PairedCall {
  readonly row: EntryRow;
  readonly callId: string;
  readonly name: string;
  hasResult: boolean;
}

type LoneResult = Omit<PairedCall, "hasResult">;

export class CallPairing {
  readonly #transcript: RecoveredTranscript;

  constructor(transcript: RecoveredTranscript) {
    this.#transcript = transcript;
  }

  run(): void {
    while (this.#pair() === "again");
  }

  /** Answers whether it must look again, since what it marked late may have been another's call or result. */
  #pair(): "done" | "again" {
    const { rows, no } = this.#transcript;
    rows.run("DELETE FROM call WHERE session_no = ?", no);
    const calls = new Map<string, PairedCall>();
    const loneResults: LoneResult[] = [];
    const doubled = new Set<number>();
    const nameOf = (turnId: string, callId: string): string => JSON.stringify([turnId, callId]);
    for (const { body: text, ...row } of this.#toolRows()) {
      const body = JSON.parse(text) as EntryBody;
      for (const { callId, name } of callsOf(body)) {
        if (calls.has(nameOf(row.turn_id, callId))) doubled.add(row.seq);
        else calls.set(nameOf(row.turn_id, callId), { row, callId, name, hasResult: false });
      }
      if (body.role !== "tool") continue;
      const { callId, name } = body;
      const call = calls.get(nameOf(row.turn_id, callId));
      if (!call) loneResults.push({ row, callId, name });
      else if (call.hasResult) doubled.add(row.seq);
      else call.hasResult = true;
    }
    for (const seq of doubled) this.#transcript.markLate(seq, "repeats a call or a result of its turn");
    if (doubled.size > 0) return "again";
    this.#standInForCalls(loneResults);
    const unplaced = new Set([...calls.values()].flatMap((call) => (this.#close(call) ? [] : [call.row.seq])));
    for (const seq of unplaced)
      this.#transcript.markLate(seq, "has a call whose result is lost, with no place left for a stand-in");
    return unplaced.size > 0 ? "again" : "done";
  }

  /** Calls of a running turn are open or closed, as its rows say; those of an ended one have a result. */
  #close({ row, callId, name, hasResult }: PairedCall): boolean {
    if (row.outcome === null) this.#openCall(row, callId, name, hasResult);
    else if (!hasResult) {
      const gap = this.#transcript.gapAfter(row);
      if (gap === undefined) return false;
      const body: ToolBody = { role: "tool", callId, name, status: "unknown", output: lostResult };
      this.#transcript.insert({ ...row, seq: gap }, `${row.turn_id}/${callId}/recovered`, body);
      this.#transcript.tell(
        `the result of call ${callId} of turn ${row.turn_id} was lost; a stand-in says that it is unknown`,
      );
    }
    return true;
  }

  #openCall({ turn_id }: EntryRow, callId: string, name: string, hasResult: boolean): void {
    const { rows, no } = this.#transcript;
    rows.run(
      "INSERT INTO call (session_no, turn_id, call_id, name, is_open) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
      no,
      turn_id,
      callId,
      name,
      hasResult ? 0 : 1,
    );
  }

  /** One message for all calls whose results follow the same gap, since one message was lost there. */
  #standInForCalls(results: readonly LoneResult[]): void {
    const gaps = new Map<number, LoneResult[]>();
    for (const result of results) {
      const gap = this.#transcript.gapBefore(result.row, "nearest");
      if (gap !== undefined) gaps.set(gap, [...(gaps.get(gap) ?? []), result]);
      else {
        // A model would refuse it without its call.
        this.#transcript.markLate(
          result.row.seq,
          "is the result of a call that is lost, with no place left for a stand-in",
        );
      }
    }
    for (const [gap, group] of gaps) {
      const [first] = group;
      if (!first) continue;
      const calls = group.map(({ callId, name }) => ({ type: "tool-call" as const, callId, name, input: {} }));
      this.#transcript.insert({ ...first.row, seq: gap }, `recovered/${first.row.turn_id}/${gap}`, {
        role: "assistant",
        parts: [{ type: "text", text: lostMessage }, ...calls],
        partial: true,
      });
      for (const { row, callId, name } of group) if (row.outcome === null) this.#openCall(row, callId, name, true);
      this.#transcript.tell(
        `the message with ${group.length} calls of turn ${first.row.turn_id} was lost; a stand-in has them`,
      );
    }
  }

  #toolRows(): IterableIterator<EntryRow & { readonly body: string }> {
    const { rows, no } = this.#transcript;
    // Rows that could matter, told by text alone: a role or a part of a tool is written like this in any JSON.
    return rows.iterate<EntryRow & { readonly body: string }>(
      `SELECT seq, turn_id, body, at_ms, archived, outcome, fencing_token AS token FROM entry JOIN turn USING (session_no, turn_id)
       WHERE session_no = ? AND late = 0 AND instr(body, '"tool') > 0 ORDER BY seq`,
      no,
    );
  }
}
