import type { Transcript } from "@turnkeeper/state-store";
import { entryText } from "@turnkeeper/state-store";

/** English text has about four characters a token; only a hint, and told as one. */
const charactersPerToken = 4;

/** What a model would see of a session, as far as the store knows. */
export function contextLines(
  { entries, revision, compactionCount }: Transcript,
  sessionId: string,
  modelId: string,
): readonly string[] {
  const counts = new Map<string, number>();
  let characterCount = 0;
  for (const { body } of entries) {
    counts.set(body.role, (counts.get(body.role) ?? 0) + 1);
    characterCount += entryText(body).length;
    if (body.role === "assistant")
      for (const part of body.parts) if (part.type === "tool-call") characterCount += JSON.stringify(part.input).length;
  }
  const roles = [...counts].map(([role, count]) => `${count} ${role}`).join(", ");
  const last = entries.findLast(({ body }) => body.role === "assistant" && body.usage?.inputTokens !== undefined)?.body;
  const measured = last?.role === "assistant" ? last.usage?.inputTokens : undefined;
  return [
    `Session ${sessionId}, revision ${revision}, model ${modelId}.`,
    entries.length === 0
      ? "The model sees nothing of it yet."
      : `The model sees ${entries.length} entries (${roles}), about ${Math.ceil(characterCount / charactersPerToken)} tokens.`,
    ...(measured === undefined ? [] : [`The last request had ${measured} input tokens, as the provider counted them.`]),
    ...(compactionCount === 0 ? [] : [`It has been summarised ${compactionCount} times.`]),
  ];
}
