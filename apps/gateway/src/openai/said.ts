import { Refusal } from "../refusal.ts";

/** A call of a tool as a conversation tells it. */
export interface SaidCall {
  readonly callId: string;
  readonly name: string;
  /** As JSON. */
  readonly inputText: string;
}

/** One message of a conversation, as a client tells it. */
export type Said =
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "assistant"; readonly text: string; readonly calls: readonly SaidCall[] }
  | { readonly role: "tool"; readonly callId: string; readonly output: string };

/** What a request says, in either of the two forms. */
export interface Conversation {
  /** What system and developer messages say. */
  readonly instructions: string | undefined;
  readonly said: readonly Said[];
}

/** A conversation as it is answered: what was, and what is new in it. */
export interface SplitConversation {
  /** Up to the last thing that the assistant said. */
  readonly before: readonly Said[];
  readonly results: readonly Extract<Said, { role: "tool" }>[];
  readonly texts: readonly string[];
}

/** A field of the request that does not fit, as OpenAI's clients are told of it. */
export function unfit(param: string, message: string, code = "invalid_value"): Refusal {
  return new Refusal(400, code, message, { fields: [{ field: param, message }] });
}

/** Parts what a client says anew from what it repeats: new is what stands behind the assistant's last message. */
export function split(said: readonly Said[], param: string): SplitConversation {
  const start = said.findLastIndex(({ role }) => role === "assistant") + 1;
  const tail = said.slice(start);
  if (tail.length === 0) throw unfit(param, "The last message is the assistant's own: there is nothing to answer.");
  return {
    before: said.slice(0, start),
    results: tail.filter((one) => one.role === "tool"),
    texts: tail.flatMap((one) => (one.role === "user" ? [one.text] : [])),
  };
}

/** Refuses calls without results, and results without calls, as every provider would. */
export function checkPairs(said: readonly Said[], param: string): void {
  let open = new Set<string>();
  for (const one of said) {
    if (one.role === "tool") {
      if (!open.delete(one.callId))
        throw unfit(param, `Result ${one.callId} answers no call of the assistant's message before it.`);
      continue;
    }
    if (open.size > 0) throw unfit(param, `These calls have no result: ${[...open].join(", ")}.`);
    const callIds = one.role === "assistant" ? one.calls.map(({ callId }) => callId) : [];
    open = new Set(callIds);
    if (open.size < callIds.length) throw unfit(param, "Two calls of the message have the same id.");
  }
  if (open.size > 0) throw unfit(param, `These calls have no result: ${[...open].join(", ")}.`);
}
