import type { LanguageModelV3CallOptions } from "@ai-sdk/provider";
import type { Host } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import { createProgressClock } from "@turnkeeper/turn-liveness";
import type { EntryBody, StateStore } from "@turnkeeper/state-store";
import { cutText } from "../compaction/cut-text.ts";
import { callModel } from "../model-call.ts";
import { answerTextOf } from "../stored-end.ts";
import type { Review } from "./background-reviews.ts";

/** As much of a message as says what it is about. */
const excerptLength = 2000;
/** A name is a few words, but a model may think before it says them. */
const outputTokensMax = 1000;
/** Nobody waits for a name. */
const silenceMs = 30_000;
/** A conversation that has no name by then keeps its first message for one. */
const turnsMax = 3;

const system =
  "Name the conversation below in at most six words, in its own language: what it is about, not what was answered. Answer with the name alone, without quotation marks or a full stop.";

function requestOf(bodies: readonly EntryBody[]): LanguageModelV3CallOptions | undefined {
  const asked = bodies.find((body) => body.role === "user" && body.child === undefined);
  if (asked?.role !== "user") return undefined;
  const answer = answerTextOf(bodies.map((body) => ({ body })));
  const cut = (text: string): string => cutText(text, excerptLength);
  const text = `<message>\n${cut(asked.text)}\n</message>\n<answer>\n${cut(answer)}\n</answer>`;
  return {
    prompt: [
      { role: "system", content: system },
      { role: "user", content: [{ type: "text", text }] },
    ],
    maxOutputTokens: outputTokensMax,
  };
}

/** The name in what a model said, without what it puts around it; empty where there is none. */
function nameIn(said: string): string {
  const [line = ""] = said.trim().split("\n");
  return line
    .trim()
    .replaceAll(/^["'“”«»*#\s]+|["'“”«»*.\s]+$/gu, "")
    .trim();
}

/**
 * Names conversations by their beginning, with a model that may be a cheaper one. A session that a person named, or that is
 * a child, is left alone; one that gets no name, for whatever reason, has its first message for one.
 */
export function sessionTitles(deps: {
  readonly store: StateStore;
  readonly host: Host;
  readonly model: ResolvedModel;
}): Review {
  const { store, host, model } = deps;
  const isNamed = new Set<string>();
  return async ({ sessionId, bodies }, signal) => {
    const session = await store.sessions.read(sessionId);
    if (!session || session.parent || session.totals.turnCount > turnsMax || isNamed.has(sessionId)) return;
    const request = requestOf(bodies);
    if (!request || signal.aborted) return;
    const { reader, failure, stopped } = await callModel(
      {
        host,
        clock: createProgressClock({ host }),
        model,
        signal,
        beforeSideEffect: async () => signal.throwIfAborted(),
        onEvent: () => {},
        onRetry: () => {},
      },
      { attempts: 1, silenceMs },
      request,
    );
    const name = failure || stopped !== undefined ? "" : nameIn(reader.text());
    if (name === "" || signal.aborted) return;
    await store.sessions.setTitle(sessionId, name, { ifUnnamed: true });
    // Only those of the first turns come here, so the set is not kept for long; a session is named once a process.
    isNamed.add(sessionId);
    if (isNamed.size > 1000) isNamed.clear();
  };
}
