/** Calls that wait for somebody to allow or deny them, while nobody holds their turn. */
import { notStarted, unknownOutcome } from "./entry.ts";
import type { ToolBody, Usage } from "./entry.ts";
import type { Grant } from "./identity.ts";
import type { JsonValue } from "./json.ts";
import type { HandOver } from "./lease.ts";
import type { EndRequest, OpenTurn, SettledTurn, StopRequest, SuspendedTurn } from "./turn.ts";

export type CallDecision = "allow" | "deny";

export interface CallAnswer {
  readonly decision: CallDecision;
  /** Who decided, for people: "turnkeeper approve, pid 4711", "http". */
  readonly by: string;
  readonly atMs: number;
  /** The call's result, where whoever answered ran it: nobody else does then. */
  readonly output?: JsonValue;
}

/** A call that somebody is or was asked about; what it is to do stands in the transcript. */
export interface AskedCall {
  readonly callId: string;
  readonly name: string;
  readonly askedAtMs: number;
  /** Absent: nobody has decided yet. */
  readonly answer?: CallAnswer;
}

export interface SuspendRequest {
  readonly grant: Grant;
  readonly turnId: string;
  /** The open calls that are asked about, in the order of asking; the turn's other open calls wait for them. */
  readonly callIds: readonly string[];
  /** What the turn has used so far: told of it where it is stopped before anybody answers. */
  readonly usage?: Usage;
  /** As in an end: what the turn started could not be ended, and later grants are told. */
  readonly leavesProcesses?: boolean;
}

export type SuspendResult =
  /** Nobody holds the session now; the turn still occupies it. */
  | { readonly kind: "suspended"; readonly turn: SuspendedTurn; readonly pendingCount: number }
  /** It had been asked to stop, and has ended so instead. */
  | ({ readonly kind: "stopped"; readonly settled: SettledTurn } & HandOver)
  | { readonly kind: "stale-token" };

export interface AnswerRequest {
  readonly sessionId: string;
  readonly callId: string;
  /** Only a call of this turn: providers number their calls anew in each. Default: whichever turn asks. */
  readonly turnId?: string;
  readonly decision: CallDecision;
  /** Who decides, for people. */
  readonly by: string;
  /** The result of a call that whoever answers has run. */
  readonly output?: JsonValue;
}

export type AnswerResult =
  /** Stored. Once `turn` asks nothing more, the next grant resumes it. */
  | { readonly kind: "recorded"; readonly turn: SuspendedTurn }
  /** The first answer counts; `turn` is as it is now. */
  | { readonly kind: "already-answered"; readonly answer: CallAnswer }
  | { readonly kind: "nothing-asked" };

/** The calls that nobody has decided on yet, in the order of asking. */
export function unansweredCalls({ approvals = [] }: Pick<OpenTurn, "approvals">): readonly AskedCall[] {
  return approvals.filter(({ answer }) => answer === undefined);
}

/** How a suspended turn ends that is stopped before it goes on. */
export function endByStop(
  { usage }: Pick<SuspendedTurn, "usage">,
  stop: StopRequest,
): Pick<EndRequest, "outcome" | "reason" | "detail" | "stop" | "usage"> {
  const detail = "It was stopped while it waited for approval; the calls that waited did not run.";
  return { outcome: "interrupted", reason: stop.reason, detail, stop, ...(usage ? { usage } : {}) };
}

/**
 * What the transcript says of a call that its turn leaves open: the result that an answer brought, whoever was to go on
 * with it; else that it never started, where nobody held the turn, or that its outcome is unknown.
 */
export function resultOfOpenCall(
  call: { readonly callId: string; readonly name: string },
  { approvals = [], state }: Pick<OpenTurn, "approvals" | "state">,
): ToolBody {
  const { callId, name } = call;
  const { decision, output } = approvals.find((asked) => asked.callId === callId)?.answer ?? {};
  if (decision === "allow" && output !== undefined) return { role: "tool", callId, name, status: "ok", output };
  return state === "suspended" ? notStarted(call) : unknownOutcome(call);
}

/** The calls of a turn with one of them decided; undefined where it was not asked about, or was decided before. */
export function withAnswer(
  approvals: readonly AskedCall[],
  { callId, decision, by, output }: AnswerRequest,
  atMs: number,
): readonly AskedCall[] | undefined {
  const answer: CallAnswer = { decision, by, atMs, ...(output === undefined ? {} : { output }) };
  const index = approvals.findIndex((asked) => asked.callId === callId && asked.answer === undefined);
  return index < 0 ? undefined : approvals.map((asked, at) => (at === index ? { ...asked, answer } : asked));
}
