/**
 * Children: sessions that a tool call made for a part of its turn's work. What a session is of another one stands on its
 * own row and nowhere else. A child has one end, and its parent is told of it once, by an input of the parent's that is
 * written in the transaction of that end (rule 7.20): whoever ends the child's turn, and whatever becomes of the parent.
 * Where the parent's turn is suspended over the call that made the child, that call waits no more from then on (rule 7.19).
 *
 * | the child                                | its parent is told that it     |
 * | ---------------------------------------- | ------------------------------ |
 * | ends its first turn, or has it settled   | ended as that turn did         |
 * | has its input withdrawn before any turn  | was cancelled, or expired      |
 * | has no turn when its parent's turn ends  | was cancelled; it never begins |
 * | is deleted before one of these           | failed                         |
 *
 * Told is who is there: a parent whose session or turn is gone is told nothing.
 */
import { answerText } from "./entry.ts";
import type { EntryBody } from "./entry.ts";
import type { InputEnd, PendingInput } from "./inbox.ts";

/** The tool call that a session was made for. */
export interface ParentCall {
  readonly sessionId: string;
  readonly turnId: string;
  readonly callId: string;
}

/** How a child ended, beside the text that says so. */
export interface ChildEnd {
  /** The child. */
  readonly sessionId: string;
  /** Its turn; absent where it had none. */
  readonly turnId?: string;
  /** The parent's call that had made it. */
  readonly callId: string;
  readonly outcome: InputEnd;
  readonly reason?: string;
}

/** The input that tells a parent of its child's end. */
export type ChildNotice = Pick<PendingInput, "inputId" | "text"> & { readonly child: ChildEnd };

/** What a child may say of its work in a notice; the rest is in its own session. */
const answerLengthMax = 20_000;

const endings: Readonly<Record<InputEnd, string>> = {
  answered: "has ended",
  interrupted: "was interrupted",
  failed: "failed",
  cancelled: "was cancelled before it began",
  expired: "expired before it began",
};

function quoted(answer: string, sessionId: string): string {
  if (answer.length <= answerLengthMax) return answer;
  const cut = answer.slice(0, answerLengthMax).toWellFormed();
  return `${cut}\n\n(Cut here; all ${answer.length} characters of it are in session ${sessionId}.)`;
}

/** Makes the notice of a child's end; `bodies` are the last entries of its turn, oldest first. Pure. */
export function childNotice(
  child: { readonly sessionId: string; readonly parent: Pick<ParentCall, "callId"> },
  end: {
    readonly turnId?: string | undefined;
    readonly outcome: InputEnd;
    readonly reason?: string | undefined;
    readonly detail?: string | undefined;
  },
  bodies: readonly EntryBody[],
): ChildNotice {
  const { sessionId, parent } = child;
  const { turnId, outcome, reason, detail } = end;
  const why = [reason === undefined ? "" : ` (${reason})`, detail === undefined ? "" : ` ${detail}`].join(".");
  const answer = answerText(bodies).trim();
  const said = answer === "" ? "It left no answer." : `It said:\n\n${quoted(answer, sessionId)}`;
  return {
    inputId: `child/${sessionId}${turnId === undefined ? "" : `/${turnId}`}`,
    text: `The subagent in session ${sessionId}, which call ${parent.callId} had started, ${endings[outcome]}${why} ${said}`,
    child: {
      sessionId,
      ...(turnId === undefined ? {} : { turnId }),
      callId: parent.callId,
      outcome,
      ...(reason === undefined ? {} : { reason }),
    },
  };
}

/** The key of a notice where its own is taken, by whomever: it is told all the same. */
export function numberedNoticeId(inputId: string, isTaken: (inputId: string) => boolean): string {
  let numbered = inputId;
  for (let number = 2; isTaken(numbered); number++) numbered = `${inputId}/${number}`;
  return numbered;
}

/** Whether a pending input asks for a turn: a notice joins one that runs for another reason, at its next checkpoint. */
export function wantsTurn({ child }: Pick<PendingInput, "child">): boolean {
  return child === undefined;
}
