import type { Entry, InputRecord, SpoolView, TurnRecord } from "@turnkeeper/state-store";
import { oneLine } from "../one-line.ts";
import { cellWidth, padded } from "./cell-width.ts";
import { counted } from "./count-text.ts";
import { printable } from "./style.ts";
import type { Style } from "./style.ts";
import { callSummary, shownResult } from "./tool-line.ts";

/** Local time without its zone, for people. */
export function localTime(ms: number): string {
  const at = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

function marks(entry: Entry): string {
  const isPartial = entry.body.role === "assistant" && entry.body.partial === true;
  const all = [isPartial && "cut off", entry.archived && "archived", entry.late && "late"].filter(
    (mark) => mark !== false,
  );
  return all.length > 0 ? ` (${all.join(", ")})` : "";
}

/** One entry as a person reads it. */
export function entryText(entry: Entry, style: Style, columns: number): string {
  const { body } = entry;
  const head = (who: string): string => style.dim(`${localTime(entry.atMs)}  ${who}${marks(entry)}`);
  switch (body.role) {
    case "user":
      // What a subagent came to is told to the model as a message, and nobody has typed it.
      return body.child === undefined
        ? `${head("user")}\n${style.bold(printable(body.text))}\n`
        : `${head(`from session ${body.child}`)}\n${printable(body.text)}\n`;
    case "assistant": {
      const text = body.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      const calls = body.parts.flatMap((part) =>
        part.type === "tool-call" || part.type === "provider-tool"
          ? [`${style.cyan("▸")} ${printable(part.name)} ${callSummary(part.input, columns - part.name.length - 3)}`]
          : [],
      );
      const lines = [...(text.trim() === "" ? [] : [printable(text.trimEnd())]), ...calls];
      return `${head(body.model ?? "assistant")}\n${lines.join("\n")}\n`;
    }
    case "tool": {
      const ok = body.status === "ok";
      const { isGood, summary } = shownResult({ ...body, ok }, columns - body.name.length - 16);
      const mark = isGood ? style.green("✓") : style.red(ok ? "✗" : `✗ ${body.status}`);
      return `  ${mark} ${printable(body.name)} ${style.dim(summary)}${marks(entry)}\n`;
    }
    case "summary":
      return `${head("summary of what came before")}\n${printable(body.text)}\n`;
    case "notice":
      return `${style.dim(`${localTime(entry.atMs)}  ${printable(body.text)}${marks(entry)}`)}\n`;
  }
}

/** What became of an input, and why, where that is not the obvious. */
export function inputText(input: InputRecord, turns: readonly TurnRecord[]): string {
  const id = printable(input.inputId);
  if (input.state === "settled") {
    const turn = turns.find(({ turnId }) => turnId === input.turnId);
    if (turn?.state !== "ended" || turn.reason === undefined) return `input ${id}: ${input.end}`;
    const by = turn.stop === undefined ? "" : `, by ${oneLine(printable(turn.stop.by))}`;
    return `input ${id}: ${input.end} (${printable(turn.reason)}${by})`;
  }
  if (input.state === "taken") {
    // Whether the turn's process lives is not looked at here.
    const turn = turns.find(({ turnId }) => turnId === input.turnId);
    const state = turn?.state === "suspended" ? "is suspended until what it asks is answered" : "has not ended";
    return `input ${id}: in turn ${input.turnId}, which ${state}; turnkeeper why tells more`;
  }
  if (input.child) return `input ${id}: tells the next turn of a subagent's end`;
  const runner = input.runner
    ? `pid ${input.runner.pid} on ${printable(input.runner.host)}`
    : "whoever runs the session next";
  return `input ${id}: waits for ${runner}`;
}

/** What waits in the spool of one session or of several; nothing where nothing does. */
export function spoolLines(waiting: readonly SpoolView[]): readonly string[] {
  return waiting.flatMap(({ sessionId, stepCount, damagedCount, place }) => {
    const of = `of session ${sessionId}`;
    const steps = `${counted(stepCount, "step")} ${of} that the store refused: in ${place}, until the next turn on the session brings them back`;
    const damaged = `${counted(damagedCount, "damaged line")} ${of}: in ${place}, skipped when the rest came back`;
    return [...(stepCount > 0 ? [steps] : []), ...(damagedCount > 0 ? [damaged] : [])];
  });
}

/** Columns as wide as their widest cell; the last one is not padded. */
export function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cellWidth(cell));
  return rows.map((row) =>
    row.map((cell, index) => (index === row.length - 1 ? cell : padded(cell, widths[index] ?? 0))).join("  "),
  );
}
