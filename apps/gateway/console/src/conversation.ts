import type { TurnEvent } from "@turnkeeper/agent-core";
import type { Message, SessionRecords, TurnEnd } from "./gateway-json.ts";
import { beginLiveTurn, liveTurnAfter } from "./live-turn.ts";
import type { LiveTurn, Note } from "./live-turn.ts";

/** What the page knows of a session's conversation: what is stored, and what a turn says before it is. */
export interface Conversation {
  /** In order, each once. */
  readonly messages: readonly Message[];
  readonly ends: ReadonlyMap<string, TurnEnd>;
  readonly live: LiveTurn | undefined;
  /** What was noted in turns that have ended, while the page looked. */
  readonly notes: ReadonlyMap<string, readonly Note[]>;
}

export const emptyConversation: Conversation = {
  messages: [],
  ends: new Map(),
  live: undefined,
  notes: new Map(),
};

/** With more of the transcript; what is known already is taken as it comes now. */
export function withMessages(conversation: Conversation, messages: readonly Message[]): Conversation {
  if (messages.length === 0) return conversation;
  const bySeq = new Map([...conversation.messages, ...messages].map((message) => [message.seq, message]));
  return { ...conversation, messages: [...bySeq.values()].toSorted((left, right) => left.seq - right.seq) };
}

/** With how its turns ended. */
export function withRecords(conversation: Conversation, { turns }: SessionRecords): Conversation {
  const ends = new Map(conversation.ends);
  for (const { turnId, outcome, reason, detail, by } of turns)
    if (outcome !== undefined)
      ends.set(turnId, {
        turnId,
        outcome,
        ...(reason === undefined ? {} : { reason }),
        ...(detail === undefined ? {} : { detail }),
        ...(by === undefined ? {} : { by }),
      });
  return { ...conversation, ends };
}

function keptNotes({ live, notes }: Conversation): Conversation["notes"] {
  const said = live?.pieces.filter((piece): piece is Note => piece.kind === "note") ?? [];
  return live && said.length > 0 ? new Map([...notes, [live.turnId, said]]) : notes;
}

/** After one event of one of its turns. */
export function afterEvent(conversation: Conversation, event: TurnEvent, id: string | undefined): Conversation {
  const { turnId } = event;
  if (turnId === undefined) return conversation;
  let next = conversation;
  if (next.live?.turnId !== turnId) next = { ...next, notes: keptNotes(next), live: beginLiveTurn(turnId) };
  const live = liveTurnAfter(next.live ?? beginLiveTurn(turnId), event, id);
  if (event.type !== "turn.finished") return live === next.live ? next : { ...next, live };
  const { outcome, reason, detail, by } = event;
  const end: TurnEnd = {
    turnId,
    outcome,
    ...(reason === undefined ? {} : { reason }),
    ...(detail === undefined ? {} : { detail }),
    ...(by === undefined ? {} : { by }),
  };
  return { ...next, live, ends: new Map([...next.ends, [turnId, end]]) };
}

/** Whether the store has more than the page has read, once this event was told: a message was taken, a turn has ended. */
export function readsMoreAfter({ type }: TurnEvent): boolean {
  return ["turn.started", "steer.delivered", "turn.finished", "compaction.finished", "child.finished"].includes(type);
}

export const lastSeqOf = ({ messages }: Conversation): number => messages.at(-1)?.seq ?? 0;
