import { wantsTurn } from "@turnkeeper/state-store";
import type {
  ChildEnd,
  Delivery,
  InputEnd,
  InputRecord,
  JsonValue,
  PendingInput,
  QueuedInput,
  Runner,
  TakenInput,
} from "@turnkeeper/state-store";
import { parseJson } from "./json-column.ts";
import { serverBootId } from "./lease-rows.ts";
import type { SessionImage } from "./session-image.ts";

export interface InputRow {
  readonly input_id: string;
  /** In the order in which the ids first came. */
  readonly input_no: number;
  readonly seq: number;
  /** A JSON string. */
  readonly text: string;
  readonly digest: string;
  readonly delivery: Delivery;
  readonly offered_at_ms: number;
  readonly runner: string | null;
  /** Until then its runner is taken to live; null of a runner that is written: for its time from now. */
  readonly runner_until_clock_ms: number | null;
  /** That moment had come when the row was read. */
  readonly runner_is_gone?: boolean | null;
  readonly woken_clock_ms: number | null;
  readonly turn_id: string | null;
  readonly ended_as: InputEnd | null;
  readonly ended_at_ms: number | null;
  readonly child: string | null;
  readonly settings: string | null;
}

/** An input that is offered: the server numbers it, and says when. */
export type NewInputRow = Omit<InputRow, "seq" | "input_no"> & { readonly seq: null };

function facts(sessionId: string, row: InputRow): Omit<TakenInput, "state" | "turnId"> {
  return {
    sessionId,
    inputId: row.input_id,
    seq: row.seq,
    text: parseJson<string>(row.text, "input.text"),
    digest: row.digest,
    delivery: row.delivery,
    offeredAtMs: row.offered_at_ms,
    ...(row.child === null ? {} : { child: parseJson<ChildEnd>(row.child, "input.child") }),
    ...(row.settings === null ? {} : { settings: parseJson<JsonValue>(row.settings, "input.settings") }),
  };
}

export function takenInput(sessionId: string, row: InputRow, turnId: string): TakenInput {
  return { ...facts(sessionId, row), state: "taken", turnId };
}

/** Who is to run the input, whether or not it lives. */
function runnerOf(row: InputRow): Runner | undefined {
  return row.runner === null ? undefined : parseJson<Runner>(row.runner, "input.runner");
}

/**
 * What waits, as others see it: an orphan where its runner has not been heard of for its time. It is not written down
 * that it is one, so a runner that was merely slow has it again, unless somebody took it meanwhile.
 */
export function pendingInput(sessionId: string, row: InputRow, askerId?: string): PendingInput {
  const runner = runnerOf(row);
  // Who asks lives.
  const lives = runner !== undefined && (row.runner_is_gone !== true || runner.runnerId === askerId);
  return { ...facts(sessionId, row), state: "pending", ...(lives ? { runner } : {}) };
}

export function inputRecord(sessionId: string, row: InputRow): InputRecord {
  if (row.ended_as !== null) {
    const turn = row.turn_id === null ? {} : { turnId: row.turn_id };
    return { ...facts(sessionId, row), state: "settled", ...turn, end: row.ended_as, endedAtMs: row.ended_at_ms ?? 0 };
  }
  return row.turn_id === null ? pendingInput(sessionId, row) : takenInput(sessionId, row, row.turn_id);
}

export function isPending(row: InputRow): boolean {
  return row.turn_id === null && row.ended_as === null;
}

/** Every pending input of the session, oldest first, as the runner sees it that asks. */
export function queueOf(image: SessionImage, askerId?: string): QueuedInput[] {
  return image.inputs.filter(isPending).map((row) => {
    const input = pendingInput(image.sessionId, row, askerId);
    if (row.woken_clock_ms === null) return { input };
    return { input, wokenAt: { bootId: serverBootId, bootMs: row.woken_clock_ms } };
  });
}

/** How many pending inputs want a turn. */
export function pendingCount(image: SessionImage): number {
  return queueOf(image).filter(({ input }) => wantsTurn(input)).length;
}

/** What the turn holds, in the order in which the inputs first came. */
export function takenBy(image: SessionImage, turnId: string): TakenInput[] {
  return image.inputs
    .filter((row) => row.turn_id === turnId && row.ended_as === null)
    .toSorted((left, right) => left.input_no - right.input_no)
    .map((row) => takenInput(image.sessionId, row, turnId));
}

const notWaiting = { runner: null, runner_until_clock_ms: null, woken_clock_ms: null } as const;

/** Gives an orphan a runner of its own, who then answers for it. */
export function adoptInput(image: SessionImage, row: InputRow, runner: Runner): void {
  image.putInput({ ...row, ...notWaiting, delivery: "turn", runner: JSON.stringify(runner) });
}

/** Makes orphans of what this runner was to run, or of one input of it; they keep their places. */
export function orphanInputs(image: SessionImage, runnerId: string, inputId?: string): number {
  const own = image.inputs.filter(
    (row) => runnerOf(row)?.runnerId === runnerId && row.input_id === (inputId ?? row.input_id),
  );
  for (const row of own) image.putInput({ ...row, ...notWaiting });
  return own.length;
}

/** Starts a waiter's claim period, unless it is already running. */
export function wakeInput(image: SessionImage, { input, wokenAt }: QueuedInput): void {
  const row = image.input(input.inputId);
  if (!row || wokenAt !== undefined) return;
  image.putInput({ ...row, woken_clock_ms: image.now.bootMs });
  image.ring();
}

/** Whoever was woken and lost the race has a whole claim period again the next time. */
export function forgetWakeUps(image: SessionImage): void {
  for (const row of image.inputs)
    if (isPending(row) && row.woken_clock_ms !== null) image.putInput({ ...row, woken_clock_ms: null });
}

export function markTaken(image: SessionImage, inputId: string, turnId: string): void {
  const row = image.input(inputId);
  if (row) image.putInput({ ...row, ...notWaiting, turn_id: turnId });
}

/** Ends an input for good; one that has ended stays as it is (INBOX-1). */
export function settleInput(image: SessionImage, inputId: string, end: InputEnd): void {
  const row = image.input(inputId);
  if (!row || row.ended_as !== null) return;
  image.putInput({ ...row, ...notWaiting, settings: null, ended_as: end, ended_at_ms: image.stamp });
  image.touch();
}
