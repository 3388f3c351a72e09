import type { Entry, EntryDraft } from "@turnkeeper/state-store";

/** What a worker says in each entry it writes: the key it gave, and the token it wrote under. */
export interface Writing {
  readonly key: string;
  readonly fencingToken: number;
}

/** A tool call that announces an effect, as the assistant's step. */
export function announcing(turnId: string, step: number, fencingToken: number): EntryDraft {
  const key = `${turnId}/${step}/call`;
  const text = JSON.stringify({ key, fencingToken } satisfies Writing);
  return {
    key,
    body: {
      role: "assistant",
      parts: [
        { type: "text", text },
        { type: "tool-call", callId: `${turnId}/${step}`, name: "effect", input: null },
      ],
    },
  };
}

/** What became of the effect. */
export function reporting(turnId: string, step: number, fencingToken: number, isDone: boolean): EntryDraft {
  const key = `${turnId}/${step}/result`;
  const status = isDone ? "ok" : "interrupted";
  return {
    key,
    body: { role: "tool", callId: `${turnId}/${step}`, name: "effect", status, output: { key, fencingToken } },
  };
}

/** What the worker said that wrote this entry; nothing for an entry of the store's own. */
export function writingOf({ body }: Entry): Writing | undefined {
  if (body.role === "assistant") {
    const [part] = body.parts;
    return part?.type === "text" ? (JSON.parse(part.text) as Writing) : undefined;
  }
  const isOurs = body.role === "tool" && typeof body.output === "object";
  return isOurs ? (body.output as unknown as Writing) : undefined;
}
