import type { Exchange } from "./conversation.ts";
import { withoutSignature } from "./signature.ts";

const shownCount = 10;
const longestAnswer = 2000;

const quoted = (text: string): string => `"${text.length > 300 ? `${text.slice(0, 300)}…` : text}"`;

/** What was said before, from the conversation that came with the request; the demo model has no memory of its own. */
export function recall(history: readonly Exchange[]): string {
  if (history.length === 0) return "This is the first message of this session: there is nothing to remember.";
  const shown = history.slice(-shownCount);
  const first = history.length - shown.length + 1;
  const questions = shown.map(({ asked }, index) => `${first + index}. ${quoted(asked)}`);
  const last = history.findLast(({ answered }) => answered.trim() !== "");
  const answered = last ? withoutSignature(last.answered).slice(0, longestAnswer) : "";
  return [
    history.length === 1 ? "Before this you said one thing:" : `Before this you said ${history.length} things:`,
    ...questions,
    ...(last ? ["", `To ${quoted(last.asked)} I answered:`, answered] : ["", "None of it was answered."]),
  ].join("\n");
}
