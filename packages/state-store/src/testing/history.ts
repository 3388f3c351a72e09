/** What may become of a session from one step to the next, whatever the step was. */
import assert from "node:assert/strict";
import type { InputRecord } from "../inbox.ts";
import type { SessionRecords } from "../session.ts";
import type { TurnRecord } from "../turn.ts";
import { verifyRecords } from "../verify.ts";

function mayBecome(before: InputRecord, after: InputRecord): boolean {
  if (before.digest !== after.digest || before.text !== after.text) return false;
  switch (before.state) {
    case "pending":
      return true;
    case "taken":
      return after.state !== "pending" && after.turnId === before.turnId;
    case "settled":
      // Settled without a turn, its id may be offered again; settled by a turn, it stands for good (INBOX-1).
      return before.turnId === undefined || (after.state === "settled" && after.end === before.end);
  }
}

function checkTurn(before: TurnRecord, after: TurnRecord | undefined): void {
  assert.ok(after, `turn ${before.turnId} is gone`);
  // A turn that waits for answers goes on under another grant.
  if (before.state === "suspended")
    assert.ok(after.fencingToken >= before.fencingToken, "LEASE-2: the turn's token fell");
  else assert.equal(after.fencingToken, before.fencingToken);
  if (before.state === "ended") assert.deepEqual(after, before, `ended turn ${before.turnId} changed`);
}

/**
 * Throws where the step from `before` to `after` lost, changed or doubled something, or where what is there now breaks
 * a rule of its own. Both are records of one session that was not deleted in between.
 */
export function assertHistory(before: SessionRecords | undefined, after: SessionRecords): void {
  assert.deepEqual(verifyRecords(after), []);
  if (!before) return;
  assert.ok(after.fencingToken >= before.fencingToken, "LEASE-2: the greatest token fell");
  assert.ok(after.session.revision >= before.session.revision, "the revision fell");
  for (const [index, entry] of before.entries.entries()) {
    const now = after.entries[index];
    assert.ok(now, `entry ${entry.key} is gone`);
    assert.deepEqual({ ...now, archived: false }, { ...entry, archived: false }, `entry ${entry.key} changed`);
    assert.ok(now.archived || !entry.archived, `entry ${entry.key} came back from the archive`);
  }
  const inputs = new Map(after.inputs.map((input) => [input.inputId, input]));
  assert.equal(inputs.size, after.inputs.length, "INBOX-2: an input id stands twice");
  for (const input of before.inputs) {
    const now = inputs.get(input.inputId);
    assert.ok(now, `INBOX-1: input ${input.inputId} is gone`);
    assert.ok(mayBecome(input, now), `INBOX-1: input ${input.inputId} went from ${input.state} to ${now.state}`);
  }
  const turns = new Map(after.turns.map((turn) => [turn.turnId, turn]));
  for (const turn of before.turns) checkTurn(turn, turns.get(turn.turnId));
}
