import type { TakenInput } from "./inbox.ts";
import type { JsonValue } from "./json.ts";

/** Opaque fields of a provider (signatures, item ids) that must return to it unchanged. */
export type ProviderFields = { readonly [key: string]: JsonValue | undefined };

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly provider?: ProviderFields;
}

export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly provider?: ProviderFields;
}

export interface ToolCallPart {
  readonly type: "tool-call";
  /** Unique in its turn; providers repeat theirs from turn to turn. */
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  readonly provider?: ProviderFields;
}

/** A call that the provider ran itself, with its result: nobody else runs it, and nothing else answers it. */
export interface ProviderToolPart {
  readonly type: "provider-tool";
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  /** Absent where the answer was cut before it came. */
  readonly output?: JsonValue;
  readonly isError?: boolean;
  readonly provider?: ProviderFields;
  /** The fields that came with the result. */
  readonly resultProvider?: ProviderFields;
}

export type AssistantPart = TextPart | ReasoningPart | ToolCallPart | ProviderToolPart;

/** Tokens as the provider counted them; a count it did not give is absent. */
export interface Usage {
  /** With what a cache gave or took. */
  readonly inputTokens?: number;
  /** Of the input: what was read from a cache. */
  readonly cachedInputTokens?: number;
  /** Of the input: what was written to a cache. */
  readonly cacheWriteTokens?: number;
  /** With reasoning. */
  readonly outputTokens?: number;
  readonly reasoningTokens?: number;
  /** In the currency of the model's price; absent where nobody gave one. */
  readonly cost?: number;
}

export interface UserBody {
  readonly role: "user";
  readonly text: string;
  /** The inbox input this entry came from. */
  readonly inputId?: string;
  /** The child whose end it tells of: not what a user said. */
  readonly child?: string;
}

export interface AssistantBody {
  readonly role: "assistant";
  readonly parts: readonly AssistantPart[];
  /** The answer was cut off (interrupt, stall, broken stream): kept and marked, never passed off as whole. */
  readonly partial?: boolean;
  readonly model?: string;
  readonly usage?: Usage;
}

/** `unknown`: the call was open when its holder died; it may or may not have had its effect. */
export type ToolStatus = "ok" | "error" | "denied" | "interrupted" | "unknown";

export interface ToolBody {
  readonly role: "tool";
  readonly callId: string;
  readonly name: string;
  readonly status: ToolStatus;
  readonly output: JsonValue;
  /** Said to the model beside the result: that it goes round in circles. */
  readonly note?: string;
  /** The call whose result this is again; `output` only says so. */
  readonly repeats?: string;
  /** What was done to end the call, step by step, as its tool tells it: for people. */
  readonly receipt?: JsonValue;
}

export interface SummaryBody {
  readonly role: "summary";
  readonly text: string;
  /** What users said in what it replaces, in their own words, oldest first: a summary may miss what one asked for. */
  readonly userTexts?: readonly string[];
}

/** Said by the machinery (why a turn ended, what came late): shown to people, not sent to the model as an answer. */
export interface NoticeBody {
  readonly role: "notice";
  readonly text: string;
}

export type EntryBody = UserBody | AssistantBody | ToolBody | SummaryBody | NoticeBody;

/** An entry on its way into the transcript. */
export interface EntryDraft {
  /** Idempotency key, unique in the session: the same key and digest again is the same entry, committed once. */
  readonly key: string;
  readonly body: EntryBody;
}

export interface Entry extends EntryDraft {
  /** Position in the order of appending; grows, never reused. */
  readonly seq: number;
  readonly turnId: string;
  readonly digest: string;
  /** Wall time, for people. */
  readonly atMs: number;
  /** Replaced by a summary: readable and searchable, no longer model context. */
  readonly archived: boolean;
  /** Arrived after its grant had been replaced: shown, never model context, settles nothing. */
  readonly late: boolean;
}

/** The calls an entry opens, in order. */
export function callsOf(body: EntryBody): readonly ToolCallPart[] {
  return body.role === "assistant" ? body.parts.filter((part) => part.type === "tool-call") : [];
}

/** The entry that an input becomes in the transaction that gives it to a turn; its key keeps it single. */
export function takenEntry({ inputId, text, child }: Pick<TakenInput, "inputId" | "text" | "child">): EntryDraft {
  const body: UserBody = { role: "user", text, inputId, ...(child ? { child: child.sessionId } : {}) };
  return { key: `input/${inputId}`, body };
}

/** What the transcript says of a call whose holder died: it may have run, so it is never called `not run`. */
export function unknownOutcome(call: { readonly callId: string; readonly name: string }): ToolBody {
  return {
    role: "tool",
    callId: call.callId,
    name: call.name,
    status: "unknown",
    output:
      "Outcome unknown: the turn ended before a result of this call was recorded. It may have had its effect, or have it yet: check before repeating it.",
  };
}

/** The text of a turn's last assistant entry, with those directly before it that it goes on from: its answer. */
export function answerText(bodies: readonly EntryBody[]): string {
  const pieces: string[] = [];
  for (let index = bodies.findLastIndex(({ role }) => role === "assistant"); index >= 0; index--) {
    const body = bodies[index];
    const isPiece = body?.role === "assistant" && (pieces.length === 0 || body.partial === true);
    if (!isPiece) break;
    pieces.unshift(entryText(body));
  }
  return pieces.join("");
}

/** What the transcript says of a call of a turn that was stopped while it was suspended: it never started. */
export function notStarted(call: { readonly callId: string; readonly name: string }): ToolBody {
  return {
    role: "tool",
    callId: call.callId,
    name: call.name,
    status: "interrupted",
    output: "Not run: the turn was stopped before this call started.",
  };
}

/** The text of an entry as people read and search it. */
export function entryText(body: EntryBody): string {
  switch (body.role) {
    case "assistant":
      return body.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
    case "tool":
      return typeof body.output === "string" ? body.output : JSON.stringify(body.output);
    default:
      return body.text;
  }
}
