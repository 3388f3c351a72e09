/** What inputs and turns must be, once all processes have come to rest. */
import type { InputRecord, SessionRecords } from "@turnkeeper/state-store";
import type { RecordIndex } from "./record-index.ts";

/** INBOX-1: each accepted input is settled once by one turn, or still pending for a process that died with it. */
function* inputsAreSettledOnce(index: RecordIndex, records: SessionRecords): Generator<string> {
  const stored = new Map<string, InputRecord>(records.inputs.map((input) => [input.inputId, input]));
  if (stored.size < records.inputs.length) yield `INBOX-1: an input is stored twice`;
  for (const { inputId, worker } of index.all("accepted"))
    if (!stored.has(inputId)) yield `INBOX-1: input ${inputId} was accepted from ${worker} and is lost`;
  const takenBy = new Map<string, string>();
  for (const { inputId, turnId } of index.all("granted")) {
    const other = takenBy.get(inputId);
    if (other !== undefined) yield `INBOX-1: input ${inputId} was taken by ${other} and by ${turnId}`;
    takenBy.set(inputId, turnId);
  }
  const messages = records.entries.filter(({ body }) => body.role === "user");
  for (const input of records.inputs) {
    const { inputId, state } = input;
    const turnId = state === "pending" ? undefined : input.turnId;
    const inTurns = messages.filter(({ key }) => key === `input/${inputId}`).map((entry) => entry.turnId);
    if (state === "taken") yield `INBOX-1: input ${inputId} is still taken at rest`;
    if (inTurns.join() !== (turnId ?? "")) yield `INBOX-1: input ${inputId} of turn ${turnId} is in ${inTurns.join()}`;
    if (takenBy.has(inputId) && takenBy.get(inputId) !== turnId)
      yield `INBOX-1: input ${inputId} was taken by ${takenBy.get(inputId)} and is ${state} with ${turnId}`;
    const runner = state === "pending" && input.runner && index.workerOf(input.runner.instanceId);
    if (runner && !index.wasKilled(runner)) yield `INBOX-1: input ${inputId} of ${runner} is pending at rest`;
  }
}

/** TURN-1: at rest nothing is held and nothing runs; and a turn whose end was acknowledged has that end. */
function* turnsHaveEnded(index: RecordIndex, records: SessionRecords): Generator<string> {
  const turns = new Map(records.turns.map((turn) => [turn.turnId, turn]));
  if (records.lease) yield `TURN-1: token ${records.lease.fencingToken} is still held at rest`;
  for (const { turnId, state } of records.turns)
    if (state === "running") yield `TURN-1: turn ${turnId} still runs at rest`;
  for (const { turnId, fencingToken } of index.all("granted"))
    if (turns.get(turnId)?.fencingToken !== fencingToken)
      yield `LEASE-2: turn ${turnId} began under token ${fencingToken}, and is stored under ${turns.get(turnId)?.fencingToken}`;
  for (const { turnId, outcome } of index.all("ended")) {
    const turn = turns.get(turnId);
    if (turn?.state !== "ended" || turn.outcome !== outcome)
      yield `TURN-1: turn ${turnId} was acknowledged as ${outcome} and has another end`;
  }
}

export function* inputViolations(index: RecordIndex, records: SessionRecords): Generator<string> {
  yield* inputsAreSettledOnce(index, records);
  yield* turnsHaveEnded(index, records);
}
