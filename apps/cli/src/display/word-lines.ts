import { cellWidth } from "./cell-width.ts";

/**
 * A sentence as lines of at most `width` cells, broken between its words; what it is indented by, all of them are. A word
 * that is wider stays whole, for the terminal to break.
 */
export function wordLines(sentence: string, width: number): readonly string[] {
  const [indent = ""] = /^ */.exec(sentence) ?? [];
  const lines: string[] = [];
  let line: string | undefined;
  for (const word of sentence.slice(indent.length).split(" ")) {
    const longer: string = line === undefined ? indent + word : `${line} ${word}`;
    if (line === undefined || cellWidth(longer) <= width) line = longer;
    else {
      lines.push(line);
      line = indent + word;
    }
  }
  return [...lines, line ?? indent];
}
