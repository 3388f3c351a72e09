/** A turn that waits for answers, for the cases about them. */
import assert from "node:assert/strict";
import type { Grant } from "../identity.ts";
import type { StateStore } from "../state-store.ts";
import type { AnswerResult, CallDecision } from "../approval.ts";
import type { SuspendedTurn } from "../turn.ts";
import { beginOf, calls, recordsOf, results, session, startTurn } from "./scene.ts";

/** A suspended turn, and the grant that it was suspended under. */
export interface Asking {
  readonly grant: Grant;
  readonly turnId: string;
  readonly turn: SuspendedTurn;
}

/** `a` runs a turn with two calls open and one done, and is suspended over `asked`. */
export async function suspended(store: StateStore, asked: readonly string[] = ["call-1", "call-2"]): Promise<Asking> {
  const { grant, turnId } = await startTurn(store, "a", { ttlMs: 5_000 });
  const entries = [calls("step", "call-0", "call-1", "call-2"), results("result-0", "call-0")];
  await store.transcript.append({ grant, turnId, entries });
  const answer = await store.turns.suspend({ grant, turnId, callIds: asked, usage: { inputTokens: 7 } });
  assert.equal(answer.kind, "suspended", `the turn was to be suspended: ${answer.kind}`);
  return { grant, turnId, turn: answer.turn };
}

/** Somebody answers a call of it. */
export function decide(store: StateStore, callId: string, decision: CallDecision = "allow"): Promise<AnswerResult> {
  return store.turns.answer({ sessionId: session, callId, decision, by: "somebody" });
}

/** What a grant that may resume it asks for. */
export function resuming(name: string): { readonly begin: ReturnType<typeof beginOf> & { readonly resumes: true } } {
  return { begin: { ...beginOf(name), resumes: true } };
}

/** What became of one of its calls, as the transcript has it. */
export async function statusOf(store: StateStore, callId: string): Promise<string> {
  const { entries } = await recordsOf(store);
  const found = entries.flatMap(({ body }) => (body.role === "tool" && body.callId === callId ? [body] : []));
  return found.map(({ status, output }) => `${status}: ${JSON.stringify(output).slice(1, 8)}`).join(" | ");
}
