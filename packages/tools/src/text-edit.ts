/** Replaces exact text in a text, whatever its line endings are. Pure. */

/** A replaced part of the old text. */
export interface TextChange {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

export interface TextEdit {
  readonly find: string;
  readonly replace: string;
  readonly all: boolean;
}

export type EditOutcome =
  | { readonly kind: "edited"; readonly text: string; readonly changes: readonly TextChange[] }
  | { readonly kind: "no-match" }
  /** Where it stands, as line numbers from 1; the first of them only. */
  | { readonly kind: "many-matches"; readonly count: number; readonly lines: readonly number[] };

const shownLinesMax = 20;

/**
 * Applies the edit. A line end in `find` stands for either kind of line end, and those in `replace` become the kind
 * that stands at that place; everything else must be the same, character for character.
 */
export function applyEdit(text: string, edit: TextEdit): EditOutcome {
  const pattern = new RegExp(edit.find.split(/\r?\n/).map(escaped).join("\\r?\\n"), "g");
  const matches = matchesOf(text, pattern, edit.all);
  if (matches.length === 0) return { kind: "no-match" };
  if (matches.length > 1 && !edit.all) {
    const lines = matches.slice(0, shownLinesMax).map(({ index }) => lineNumberAt(text, index));
    return { kind: "many-matches", count: matches.length, lines };
  }
  const usual = usualLineEnd(text);
  const changes = matches.map((match): TextChange => {
    const end = match[0].includes("\n") ? (match[0].includes("\r\n") ? "\r\n" : "\n") : usual;
    const replacement = end === undefined ? edit.replace : edit.replace.replaceAll(/\r?\n/g, end);
    return { start: match.index, end: match.index + match[0].length, replacement };
  });
  return { kind: "edited", text: changed(text, changes), changes };
}

/** Also those that overlap, when there must be only one: either could be meant. */
function matchesOf(text: string, pattern: RegExp, all: boolean): readonly RegExpExecArray[] {
  const matches: RegExpExecArray[] = [];
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    matches.push(match);
    if (!all) pattern.lastIndex = match.index + 1;
  }
  return matches;
}

function changed(text: string, changes: readonly TextChange[]): string {
  let result = "";
  let position = 0;
  for (const { start, end, replacement } of changes) {
    result += text.slice(position, start) + replacement;
    position = end;
  }
  return result + text.slice(position);
}

/** The kind that most lines end with; undefined for a text of one line. */
function usualLineEnd(text: string): "\n" | "\r\n" | undefined {
  const all = text.split("\n").length - 1;
  if (all === 0) return undefined;
  return (text.split("\r\n").length - 1) * 2 > all ? "\r\n" : "\n";
}

/** From 1. */
export function lineNumberAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
