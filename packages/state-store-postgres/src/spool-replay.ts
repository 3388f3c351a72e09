import { digestOf, fateOfStep, keyOfSpooled } from "@turnkeeper/state-store";
import type { EntryDraft, SpooledStep } from "@turnkeeper/state-store";
import { addEntries, isPaired } from "./entry-rows.ts";
import { isPending, settleInput } from "./input-rows.ts";
import type { SessionImage } from "./session-image.ts";
import type { SessionCall } from "./session-writes.ts";
import { closeTurn, noteProcesses, settleNotice } from "./settlement.ts";
import type { SpoolFile } from "./spool-folder.ts";
import { turnRecord } from "./turn-rows.ts";

/** Stores an entry that is not there yet. Whatever does not fit the turn is late: a replay refuses nothing. */
function absorbEntry(
  image: SessionImage,
  { turnId, keptAtMs }: SpooledStep,
  draft: EntryDraft,
  mayJoin: boolean,
): void {
  const { body } = draft;
  const digest = digestOf(body);
  const key = keyOfSpooled({ key: draft.key, digest }, mayJoin, (one) => image.readDigestOf(one));
  if (key === undefined) return;
  const joins = key === draft.key && isPaired(image, turnId, body);
  addEntries(image, turnId, [{ key, body, digest }], { atMs: keptAtMs, late: !joins });
}

function absorbStep(image: SessionImage, step: SpooledStep): ReturnType<typeof fateOfStep> {
  const { turnId, settledInputs = [], end } = step;
  const row = image.turn(turnId);
  const fate = fateOfStep(step, row && turnRecord(image.sessionId, row));
  if (fate === "waits") return fate;
  for (const draft of step.entries) absorbEntry(image, step, draft, fate === "joins");
  if (fate === "late") return fate;
  for (const { inputId, end: inputEnd } of settledInputs) {
    const input = image.input(inputId);
    if (input && input.child !== null && isPending(input)) settleNotice(image, inputId, turnId, inputEnd);
    else if (input?.turn_id === turnId) settleInput(image, inputId, inputEnd);
  }
  if (end && row) {
    closeTurn(image, row, end);
    noteProcesses(image, row, end.leavesProcesses);
  }
  return fate;
}

/** The replay of one session's spool by one call. */
export class SpoolReplay {
  readonly #files: readonly SpoolFile[];
  #absorbed: readonly SpoolFile[] = [];

  constructor(files: readonly SpoolFile[]) {
    this.#files = files;
  }

  /** What the steps will ask for. */
  reading(own: NonNullable<SessionCall<unknown>["reading"]>): NonNullable<SessionCall<unknown>["reading"]> {
    const steps = this.#files.flatMap(({ step }) => step ?? []);
    return {
      keys: [
        ...(own.keys ?? []),
        ...steps.flatMap(({ entries }) => entries.flatMap(({ key }) => [key, `${key}/late`])),
      ],
      turnIds: [...(own.turnIds ?? []), ...steps.map(({ turnId }) => turnId)],
      inputIds: [
        ...(own.inputIds ?? []),
        ...steps.flatMap(({ settledInputs = [] }) => settledInputs.map(({ inputId }) => inputId)),
      ],
    };
  }

  /** A decision that may absorb: what an earlier one took, which was not stored, counts no more. */
  deciding<T>(decide: (image: SessionImage) => T): (image: SessionImage) => T {
    return (image) => {
      this.#absorbed = [];
      return decide(image);
    };
  }

  /** Joins the session's steps to its turns, oldest first. To be called before anything is settled. */
  absorb(image: SessionImage): void {
    if (!image.session) return;
    this.#absorbed = this.#files.filter(({ step }) => step !== undefined && absorbStep(image, step) !== "waits");
  }

  /** What the call has taken: it may go once that is committed. */
  get absorbed(): readonly SpoolFile[] {
    return this.#absorbed;
  }
}
