import type { SessionRecord } from "@turnkeeper/state-store";
import { cellWidth } from "./cell-width.ts";
import { counted } from "./count-text.ts";
import { clipped } from "./style.ts";
import { localTime, table } from "./transcript-text.ts";

/** What is left of a line for the title, which comes last. */
const narrowestTitle = 20;

function cellsOf({ sessionId, updatedAtMs, entryCount, totals }: SessionRecord): readonly string[] {
  const tokenCount = totals.inputTokens + totals.outputTokens;
  return [
    sessionId,
    counted(entryCount, "entry", "entries"),
    counted(totals.turnCount, "turn"),
    tokenCount === 0 ? "" : counted(tokenCount, "token"),
    `changed ${localTime(updatedAtMs)}`,
  ];
}

/** One line a session: its id, how much it holds, when it changed, its title; a subagent's is marked. */
export function sessionLines(sessions: readonly SessionRecord[], columns: number): readonly string[] {
  const lines = table(sessions.map((session) => [...cellsOf(session), ""]));
  return lines.map((line, index) => {
    const { title = "", parent } = sessions[index] ?? {};
    const marked = parent ? `↳ ${title}` : title;
    return `${line}${clipped(marked, Math.max(narrowestTitle, columns - cellWidth(line)))}`.trimEnd();
  });
}
