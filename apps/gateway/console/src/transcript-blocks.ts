import type { Conversation } from "./conversation.ts";
import type { Ask, Message, SessionWhy, TurnEnd } from "./gateway-json.ts";
import type { LivePiece, LiveTurn, Note } from "./live-turn.ts";

interface BlockOf {
  /** The same for the same thing, for as long as it is shown. */
  readonly key: string;
  /** Replaced by a summary: still readable, not told to the model any more. */
  readonly isArchived?: boolean;
  /** Came after its turn had lost the session. */
  readonly isLate?: boolean;
}

export interface WordsBlock extends BlockOf {
  readonly kind: "user" | "answer" | "thought" | "summary" | "notice";
  readonly text: string;
  readonly at?: string;
  /** It is being written. */
  readonly isLive?: boolean;
  /** It was cut off. */
  readonly isPartial?: boolean;
}

/** Its result's status, or what it waits for: to end, for somebody to allow it, or for the other calls to be answered. */
export type CallState =
  | "running"
  | "asks"
  | "awaits-result"
  | "allowed"
  | "ok"
  | "error"
  | "denied"
  | "interrupted"
  | "unknown";

export interface CallBlock extends BlockOf {
  readonly kind: "call";
  readonly callId: string;
  readonly turnId: string;
  readonly name: string;
  readonly input: unknown;
  readonly state: CallState;
  readonly output?: unknown;
  readonly note?: string;
  readonly durationMs?: number;
}

export interface NoteBlock extends BlockOf, Note {}

export type Block = WordsBlock | CallBlock | NoteBlock;

interface Facts {
  readonly results: ReadonlyMap<string, Message>;
  readonly live: LiveTurn | undefined;
  /** The calls that the turn waits for, with what was said to them so far. */
  readonly asked: ReadonlyMap<string, CallState>;
}

const keyOf = (turnId: string, callId: string): string => `${turnId}/${callId}`;

const statuses: ReadonlySet<string> = new Set<CallState>(["ok", "error", "denied", "interrupted"]);

const stateOf = (status: string): CallState => (statuses.has(status) ? (status as CallState) : "unknown");

function stateWhileAsked({ decision, awaits }: Ask): CallState {
  if (decision === null) return awaits === "result" ? "awaits-result" : "asks";
  return decision === "allow" ? "allowed" : "denied";
}

function callBlock(
  { callId, name, input }: { readonly callId: string; readonly name: string; readonly input: unknown },
  turnId: string,
  { results, live, asked }: Facts,
  marks: Omit<BlockOf, "key">,
): CallBlock {
  const base = { ...marks, kind: "call", key: `call ${keyOf(turnId, callId)}`, callId, turnId, name, input } as const;
  const stored = results.get(keyOf(turnId, callId));
  const told = live?.turnId === turnId ? live.results.get(callId) : undefined;
  const took = told ? { durationMs: told.durationMs } : {};
  if (stored) {
    const { status = "ok", output, note } = stored;
    return { ...base, ...took, state: stateOf(status), output, ...(note === undefined ? {} : { note }) };
  }
  if (told) {
    const { ok, output, note } = told;
    return { ...base, ...took, state: ok ? "ok" : "error", output, ...(note === undefined ? {} : { note }) };
  }
  const other = live?.turnId === turnId && !live.isEnded ? "running" : "unknown";
  return { ...base, state: asked.get(callId) ?? other };
}

function blocksOf(message: Message, facts: Facts): readonly Block[] {
  const { role, seq, turnId, at, text = "" } = message;
  const marks = {
    ...(message.archived ? { isArchived: true } : {}),
    ...(message.late ? { isLate: true } : {}),
  };
  const words = (kind: WordsBlock["kind"], said: string): readonly Block[] =>
    said.trim() === "" ? [] : [{ ...marks, kind, key: `${kind} ${seq}`, text: said, at }];
  switch (role) {
    case "user":
    case "summary":
    case "notice":
      return words(role, text);
    case "assistant": {
      const answer = words("answer", text).map((block) =>
        message.partial ? { ...(block as WordsBlock), isPartial: true } : block,
      );
      const provided = (message.providerTools ?? []).map((call): CallBlock => ({
        ...marks,
        kind: "call",
        key: `call ${keyOf(turnId, call.callId)}`,
        ...call,
        turnId,
        state: "ok",
      }));
      const calls = (message.toolCalls ?? []).map((call) => callBlock(call, turnId, facts, marks));
      return [...words("thought", message.reasoning ?? ""), ...provided, ...answer, ...calls];
    }
    case "tool":
      return [];
  }
}

/** What of a live turn is not in the transcript yet. */
function unstored(turn: LiveTurn, messages: readonly Message[], facts: Facts): readonly Block[] {
  const own = messages.filter(({ turnId, late }) => turnId === turn.turnId && !late);
  const length = (textOf: (message: Message) => string | undefined): number =>
    own.reduce((sum, message) => sum + (message.role === "assistant" ? (textOf(message)?.length ?? 0) : 0), 0);
  const stored = { text: length(({ text }) => text), reasoning: length(({ reasoning }) => reasoning) };
  const calls = new Set(own.flatMap(({ toolCalls = [] }) => toolCalls.map(({ callId }) => callId)));
  const isLast = (piece: LivePiece): boolean => !turn.isEnded && piece === turn.pieces.at(-1);
  return turn.pieces.flatMap((piece, index): Block[] => {
    const key = `live ${turn.turnId} ${index}`;
    if (piece.kind === "note") return [{ ...piece, key }];
    if (piece.kind === "call") return calls.has(piece.callId) ? [] : [callBlock(piece, turn.turnId, facts, {})];
    const text = piece.text.slice(Math.max(0, stored[piece.kind] - piece.from));
    if (text.trim() === "") return [];
    return [{ kind: piece.kind === "text" ? "answer" : "thought", key, text, isLive: isLast(piece) }];
  });
}

const reasons: Readonly<Record<string, string>> = {
  stalled: "it made no progress",
  "user-stop": "somebody stopped it",
  "user-message": "another message took its place",
  "lease-lost": "it lost the session",
  deadline: "its time was up",
  shutdown: "its process shut down",
  parent: "the turn that wanted it was stopped",
  crashed: "its process died",
};

/** How a turn ended, where that was not with an answer. */
export function endSentence({ outcome, reason, detail, by }: TurnEnd): string {
  const why = detail ?? (reason === undefined ? undefined : (reasons[reason] ?? reason));
  const what = outcome === "interrupted" ? "Interrupted" : outcome === "failed" ? "Failed" : `Ended as ${outcome}`;
  return `${what}${by === undefined ? "" : ` by ${by}`}${why === undefined ? "" : `: ${why.replace(/\.$/, "")}`}.`;
}

function endBlocks(turnId: string, { ends, notes }: Conversation): readonly Block[] {
  const noted = (notes.get(turnId) ?? []).map((note, index): Block => ({ ...note, key: `note ${turnId} ${index}` }));
  const end = ends.get(turnId);
  if (!end || end.outcome === "answered") return noted;
  const tone = end.outcome === "failed" || end.reason === "stalled" || end.reason === "crashed" ? "bad" : "warn";
  return [...noted, { kind: "note", key: `end ${turnId}`, tone, text: endSentence(end), at: "" }];
}

/** The whole conversation as it is read, top to bottom: what is stored, then what is not yet. */
export function transcriptBlocks(conversation: Conversation, why: SessionWhy | undefined): readonly Block[] {
  const { messages, live } = conversation;
  const tools = messages.filter((message) => message.role === "tool" && !message.late);
  const asks = why?.turn?.asks ?? [];
  const facts: Facts = {
    results: new Map(tools.map((message) => [keyOf(message.turnId, message.callId ?? ""), message])),
    live,
    asked: new Map(asks.map((ask) => [ask.callId, stateWhileAsked(ask)])),
  };
  const lastOfTurn = new Map(messages.filter(({ late }) => !late).map(({ turnId, seq }) => [turnId, seq]));
  const stored = messages.flatMap((message): readonly Block[] => {
    const { turnId, seq } = message;
    const isOver = lastOfTurn.get(turnId) === seq && turnId !== live?.turnId;
    return [...blocksOf(message, facts), ...(isOver ? endBlocks(turnId, conversation) : [])];
  });
  if (!live) return stored;
  return [...stored, ...unstored(live, messages, facts), ...(live.isEnded ? endBlocks(live.turnId, conversation) : [])];
}
