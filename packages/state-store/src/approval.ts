/**
 * Calls that keep their turn waiting while nobody holds it: for somebody to allow or deny them, or for the end of a
 * subagent that itself waits for somebody.
 */
import type { ParentCall } from "./child.ts";
import { notStarted, unknownOutcome } from "./entry.ts";
import type { ToolBody, Usage } from "./entry.ts";
import type { Grant } from "./identity.ts";
import type { JsonValue } from "./json.ts";
import type { AcquireRequest, HandOver } from "./lease.ts";
import type { EndRequest, OpenTurn, SettledTurn, StopRequest, SuspendedTurn, TurnRecord } from "./turn.ts";

type Begin = NonNullable<AcquireRequest["begin"]>;

export type CallDecision = "allow" | "deny";

export interface CallAnswer {
  readonly decision: CallDecision;
  /** Who decided, for people: "turnkeeper approve, pid 4711", "http". */
  readonly by: string;
  readonly atMs: number;
  /** The call's result, where whoever answered ran it: nobody else does then. */
  readonly output?: JsonValue;
}

/** The subagent that a call waits for: its end lets the call go on, whatever it is, and nothing else does. */
export interface AwaitedChild {
  readonly sessionId: string;
  readonly sinceMs: number;
  /** Absent: it has not ended yet. Written in the transaction that ends it. */
  readonly endedAtMs?: number;
}

/** A call that its turn waits or waited for; what it is to do stands in the transcript. */
export interface AskedCall {
  readonly callId: string;
  readonly name: string;
  readonly askedAtMs: number;
  /**
   * Its caller runs it and brings its result, until this wall time of the store; then nobody waits for it any more.
   * Absent: it is to be allowed or denied, whenever that is.
   */
  readonly resultUntilMs?: number;
  /** Absent: nobody has decided yet, or nobody was asked. */
  readonly answer?: CallAnswer;
  /** It runs, and waits for a subagent: there is nothing to decide, or no more. */
  readonly child?: AwaitedChild;
}

/** A call that has started and waits for the end of its subagent. */
export interface ChildWait {
  readonly callId: string;
  readonly childSessionId: string;
}

export interface SuspendRequest {
  readonly grant: Grant;
  readonly turnId: string;
  /** The open calls that are asked about, in the order of asking; the turn's other open calls wait for them. */
  readonly callIds: readonly string[];
  /** The open calls that wait for their own subagents; one that has ended by now is waited for no more. */
  readonly waits?: readonly ChildWait[];
  /** Those of `callIds` that the caller runs, and how long its results are waited for. */
  readonly results?: { readonly callIds: readonly string[]; readonly waitMs: number };
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
  /** This very request was committed before: the turn has gone on since, in whatever hands, or has ended. */
  | { readonly kind: "was-suspended"; readonly turn: TurnRecord; readonly pendingCount: number }
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

/** The calls that keep a turn waiting: nobody has decided on them yet, or their subagents have not ended. */
export function unansweredCalls({ approvals = [] }: Pick<OpenTurn, "approvals">): readonly AskedCall[] {
  return approvals.filter(({ answer, child }) => (child ? child.endedAtMs : answer) === undefined);
}

/** Whether a request for a free session goes on with its suspended turn. Pure. */
export function mayResume(turn: SuspendedTurn, { resumes = false }: Pick<Begin, "resumes"> = {}): boolean {
  return unansweredCalls(turn).length === 0 && (typeof resumes === "string" ? resumes === turn.turnId : resumes);
}

/** Whether a result that a suspended turn waits for has not come in time. */
export function isOverdue(turn: OpenTurn, atMs: number): boolean {
  if (turn.state !== "suspended") return false;
  return unansweredCalls(turn).some(({ resultUntilMs = Number.POSITIVE_INFINITY }) => resultUntilMs <= atMs);
}

/** What ends a turn whose caller never brought the results of its calls. */
export const overdueStop: Omit<StopRequest, "atMs"> = Object.freeze({
  hard: true,
  reason: "deadline",
  by: "the time for results",
});

/** What a store knows of the session that a call waits for. */
export interface AwaitedSession {
  readonly parent: ParentCall | undefined;
  /** Its end was told: there is none to wait for. */
  readonly hasToldParent: boolean;
}

/**
 * The calls of a turn with those that it is suspended over now. Refuses, with what `refused` makes of the reason, what
 * nobody could answer or go on with. Pure.
 */
export function withAsked(
  { sessionId, turnId, approvals = [] }: Pick<OpenTurn, "sessionId" | "turnId" | "approvals">,
  { callIds, waits = [], results }: Pick<SuspendRequest, "callIds" | "waits" | "results">,
  facts: {
    /** The turn's open calls: their names, by id. */
    readonly open: ReadonlyMap<string, string>;
    readonly atMs: number;
    readonly childOf: (sessionId: string) => AwaitedSession | undefined;
  },
  refused: (why: string) => Error,
): readonly AskedCall[] {
  const { atMs, childOf } = facts;
  if (callIds.length + waits.length === 0) throw refused("it asks about no call");
  const open = new Map(facts.open);
  const take = (callId: string): string => {
    const name = open.get(callId);
    if (name === undefined) throw refused(`call ${callId} is not open, or was asked about before`);
    open.delete(callId);
    return name;
  };
  const asked = new Map(approvals.map((call) => [call.callId, call]));
  for (const callId of callIds) {
    if (asked.has(callId)) throw refused(`call ${callId} is not open, or was asked about before`);
    const isCallers = results?.callIds.includes(callId) ?? false;
    const until = isCallers && results ? { resultUntilMs: atMs + results.waitMs } : {};
    asked.set(callId, { callId, name: take(callId), askedAtMs: atMs, ...until });
  }
  for (const { callId, childSessionId } of waits) {
    const name = take(callId);
    const session = childOf(childSessionId);
    const { parent } = session ?? {};
    // One that is gone was told as ended.
    const isOwn = parent?.sessionId === sessionId && parent.turnId === turnId && parent.callId === callId;
    if (session && !isOwn) throw refused(`session ${childSessionId} is no subagent of call ${callId}`);
    const ended = !session || session.hasToldParent ? { endedAtMs: atMs } : {};
    const child = { sessionId: childSessionId, sinceMs: atMs, ...ended };
    asked.set(callId, { askedAtMs: atMs, ...asked.get(callId), callId, name, child });
  }
  return [...asked.values()];
}

/**
 * Whether the turn has been suspended over exactly these calls: each is asked about once in a turn, so only a repetition
 * of the request that did it finds that. Pure.
 */
export function hasBeenSuspended(
  { approvals = [] }: Pick<TurnRecord, "approvals">,
  { callIds, waits = [] }: Pick<SuspendRequest, "callIds" | "waits">,
): boolean {
  const asked = new Map(approvals.map((call) => [call.callId, call]));
  const isWaiting = waits.every(({ callId, childSessionId }) => asked.get(callId)?.child?.sessionId === childSessionId);
  return callIds.length + waits.length > 0 && callIds.every((callId) => asked.has(callId)) && isWaiting;
}

/** The calls of a turn once a subagent has ended; undefined where none of them waited for it. */
export function withChildEnd(
  approvals: readonly AskedCall[],
  childSessionId: string,
  atMs: number,
): readonly AskedCall[] | undefined {
  const isWaiting = ({ child }: AskedCall): boolean =>
    child?.sessionId === childSessionId && child.endedAtMs === undefined;
  if (!approvals.some(isWaiting)) return undefined;
  return approvals.map((asked) =>
    asked.child && isWaiting(asked) ? { ...asked, child: { ...asked.child, endedAtMs: atMs } } : asked,
  );
}

/** How a suspended turn ends that is stopped before it goes on. */
export function endByStop(
  { usage, approvals }: Pick<SuspendedTurn, "usage" | "approvals">,
  stop: StopRequest,
): Pick<EndRequest, "outcome" | "reason" | "detail" | "stop" | "usage"> {
  const isCallers = unansweredCalls({ approvals }).some(({ resultUntilMs }) => resultUntilMs !== undefined);
  const detail = isCallers
    ? "It was stopped while it waited for the results of calls that its caller runs; those without one count as not run."
    : "It was stopped while it waited for approval; the calls that waited for it did not run.";
  return { outcome: "interrupted", reason: stop.reason, detail, stop, ...(usage ? { usage } : {}) };
}

/** What the transcript says of a call that was given up while its subagent goes on. */
export function leftChild(
  { callId, name }: { readonly callId: string; readonly name: string },
  childSessionId: string,
): ToolBody {
  const output = `The turn was stopped while the subagent in session ${childSessionId} waited for approval. A message tells of that subagent's end.`;
  return { role: "tool", callId, name, status: "interrupted", output };
}

/**
 * What the transcript says of a call that its turn leaves open: the result that an answer brought, whoever was to go on
 * with it; else that its subagent is left, or that it never started, where nobody held the turn, or that its outcome is
 * unknown.
 */
export function resultOfOpenCall(
  call: { readonly callId: string; readonly name: string },
  { approvals = [], state }: Pick<OpenTurn, "approvals" | "state">,
): ToolBody {
  const { callId, name } = call;
  const { answer, child } = approvals.find((asked) => asked.callId === callId) ?? {};
  const { decision, output } = answer ?? {};
  if (decision === "allow" && output !== undefined) return { role: "tool", callId, name, status: "ok", output };
  if (state !== "suspended") return unknownOutcome(call);
  return child ? leftChild(call, child.sessionId) : notStarted(call);
}

/**
 * The calls of a turn with one of them decided; undefined where nobody is asked about it, or was decided before, or where
 * a call that waits for its result is merely allowed: nobody would run it.
 */
export function withAnswer(
  approvals: readonly AskedCall[],
  { callId, decision, by, output }: AnswerRequest,
  atMs: number,
): readonly AskedCall[] | undefined {
  const answer: CallAnswer = { decision, by, atMs, ...(output === undefined ? {} : { output }) };
  const index = approvals.findIndex((asked) => asked.callId === callId && !asked.answer && !asked.child);
  const isOnlyAllowed = decision === "allow" && output === undefined;
  if (index < 0 || (isOnlyAllowed && approvals[index]?.resultUntilMs !== undefined)) return undefined;
  return approvals.map((asked, at) => (at === index ? { ...asked, answer } : asked));
}
