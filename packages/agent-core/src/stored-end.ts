import type { Entry, SettledInput, StateStore } from "@turnkeeper/state-store";
import { sessionBusy } from "./call-end.ts";
import type { CallEnd } from "./turn-call.ts";

/**
 * The text of a turn's last assistant entry, with those directly before it that it goes on from: what `turn.finished`
 * says.
 */
export function answerTextOf(entries: readonly Pick<Entry, "body">[]): string {
  const pieces: string[] = [];
  for (let index = entries.findLastIndex(({ body }) => body.role === "assistant"); index >= 0; index--) {
    const body = entries[index]?.body;
    const isPiece = body?.role === "assistant" && (pieces.length === 0 || body.partial === true);
    if (!isPiece) break;
    pieces.unshift(body.parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
  }
  return pieces.join("");
}

/** How a settled input ended, told as the call that ran it was told. */
export async function storedEnd(
  store: StateStore,
  input: Pick<SettledInput, "sessionId" | "turnId" | "end">,
): Promise<CallEnd> {
  if (input.turnId === undefined) {
    return input.end === "expired" ? sessionBusy : { outcome: "cancelled", reason: "user-stop" };
  }
  const turn = await store.turns.read(input.sessionId, input.turnId);
  const { entries } = await store.transcript.load(input.sessionId, { turnId: input.turnId, all: true });
  const outcome = input.end === "expired" ? "cancelled" : input.end;
  const facts = turn?.state === "ended" ? turn : undefined;
  return {
    outcome,
    text: answerTextOf(entries),
    ...(facts?.reason === undefined ? {} : { reason: facts.reason }),
    ...(facts?.detail === undefined ? {} : { detail: facts.detail }),
    ...(facts?.stop === undefined ? {} : { by: facts.stop.by }),
    ...(facts?.usage === undefined ? {} : { usage: facts.usage }),
  };
}
