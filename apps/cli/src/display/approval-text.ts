import { legible } from "./style.ts";
import type { Style } from "./style.ts";

/** What a person is asked about; `childSessionId`: the subagent that makes the call. */
export interface AskedCall {
  readonly name: string;
  readonly input: unknown;
  readonly childSessionId?: string;
}

/** How many unchanged lines stand around those that an edit changes. */
const contextLinesMax = 3;

function countOfSame(left: readonly string[], right: readonly string[]): number {
  let count = 0;
  while (count < left.length && count < right.length && left[count] === right[count]) count++;
  return count;
}

/** What an edit takes out and puts in, with the lines around it that it names and leaves as they are. */
function editLines(oldText: string, newText: string, style: Style): readonly string[] {
  const [before, after] = [oldText.split("\n"), newText === "" ? [] : newText.split("\n")];
  const head = countOfSame(before, after);
  const tail = countOfSame(before.slice(head).toReversed(), after.slice(head).toReversed());
  const same = (lines: readonly string[]): readonly string[] => lines.map((line) => style.dim(` ${legible(line)}`));
  return [
    ...same(before.slice(Math.max(0, head - contextLinesMax), head)),
    ...before.slice(head, before.length - tail).map((line) => style.red(`-${legible(line)}`)),
    ...after.slice(head, after.length - tail).map((line) => style.green(`+${legible(line)}`)),
    ...same(before.slice(before.length - tail).slice(0, contextLinesMax)),
  ];
}

function fieldLines(name: string, value: unknown): readonly string[] {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  const lines = text.replace(/\n$/, "").split("\n").map(legible);
  return lines.length === 1
    ? [`${legible(name)}: ${lines[0] ?? ""}`]
    : [`${legible(name)} (${lines.length} lines):`, ...lines.map((line) => `  ${line}`)];
}

function isEdit(
  input: Readonly<Record<string, unknown>>,
): input is { readonly old_text: string; readonly new_text: string } {
  return typeof input["old_text"] === "string" && typeof input["new_text"] === "string";
}

/**
 * A call that somebody is asked about, in full: what is cut off on the screen may hide what it does, and so may what
 * cannot be seen. An edit is shown as the change that it makes.
 */
export function callLines({ name, input, childSessionId }: AskedCall, style: Style): readonly string[] {
  const fields: Readonly<Record<string, unknown>> =
    typeof input === "object" && input !== null && !Array.isArray(input) ? { ...input } : { input };
  const change = isEdit(fields) ? editLines(fields.old_text, fields.new_text, style) : [];
  const told = Object.entries(fields).filter(
    ([field]) => change.length === 0 || (field !== "old_text" && field !== "new_text"),
  );
  const lines = [...told.flatMap(([field, value]) => fieldLines(field, value)), ...change];
  const whose = childSessionId === undefined ? "" : ` of subagent ${legible(childSessionId)}`;
  return [`  ${style.bold(legible(name))}${whose} asks to run:`, ...lines.map((line) => `    ${line}`)];
}
