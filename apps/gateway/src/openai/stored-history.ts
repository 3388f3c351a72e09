import { entryText } from "@turnkeeper/state-store";
import type { Entry, StateStore } from "@turnkeeper/state-store";
import { Refusal } from "../refusal.ts";
import { unfit } from "./said.ts";
import type { SplitConversation } from "./said.ts";

/** How far back a session is read for what a client repeats of it. */
const entriesMax = 200;

const plain = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

interface StoredTail {
  /** What the assistant has said since the user last spoke, with nothing between its pieces. */
  readonly answer: string;
  /** What the user has said and nobody answered, oldest first. */
  readonly texts: readonly string[];
}

/** The session's end: the answer of the last turn that has one, and the messages behind it that got none. */
function tailOf(entries: readonly Entry[]): StoredTail {
  const bodies = entries.filter(({ late }) => !late).map(({ body }) => body);
  const last = bodies.findLastIndex(({ role }) => role === "assistant");
  const first = bodies.slice(0, last + 1).findLastIndex(({ role }) => role === "user") + 1;
  const answer = bodies.slice(first, last + 1).map((body) => (body.role === "assistant" ? entryText(body) : ""));
  const texts = bodies.slice(last + 1).flatMap((body) => (body.role === "user" ? [body.text] : []));
  return { answer: plain(answer.join(" ")), texts };
}

function mismatch(param: string, what: string): Refusal {
  const detail = `${what} A durable session keeps its own transcript: send what is new alone, or name another session.`;
  return new Refusal(409, "history_mismatch", detail, {
    fields: [{ field: param, message: detail }],
    headers: { "x-should-retry": "false" },
  });
}

/**
 * What of a request is new to a durable session, whose own transcript counts. A client may send the new message alone or
 * repeat the conversation; what it repeats must end as the session does, or it is refused: nothing is guessed.
 */
export async function newTextOf(
  store: StateStore,
  sessionId: string,
  { before, texts }: SplitConversation,
  param: string,
): Promise<string> {
  const { entries } = await store.transcript.load(sessionId, { all: true, limit: entriesMax });
  const stored = tailOf(entries);
  const [last] = before.slice(-1);
  if (last?.role === "assistant") {
    if (entries.length === 0) throw mismatch(param, "The session is new, and the request repeats an answer.");
    if (!stored.answer.endsWith(plain(last.text)))
      throw mismatch(param, "The assistant's last message is not what the session has as its last answer.");
  }
  // Messages that got no answer are in the session already, where the client repeats them before a new one.
  const isRepeated = stored.texts.length < texts.length && stored.texts.every((text, index) => text === texts[index]);
  const fresh = isRepeated ? texts.slice(stored.texts.length) : texts;
  if (fresh.length === 0) throw unfit(param, "The request says nothing new: it must end in a user's message.");
  return fresh.join("\n\n");
}
