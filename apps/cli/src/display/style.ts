import { cellWidth, fitting } from "./cell-width.ts";

type Mark = (text: string) => string;

/** How text is marked on a terminal; without colour every mark is the text itself. */
export interface Style {
  readonly hasColour: boolean;
  readonly bold: Mark;
  readonly dim: Mark;
  readonly italic: Mark;
  readonly underline: Mark;
  readonly strike: Mark;
  readonly cyan: Mark;
  readonly green: Mark;
  readonly red: Mark;
  readonly yellow: Mark;
}

export function styleOf(hasColour: boolean): Style {
  const mark =
    (open: number, close: number) =>
    (text: string): string =>
      hasColour && text !== "" ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  return Object.freeze({
    hasColour,
    bold: mark(1, 22),
    dim: mark(2, 22),
    italic: mark(3, 23),
    underline: mark(4, 24),
    strike: mark(9, 29),
    cyan: mark(36, 39),
    green: mark(32, 39),
    red: mark(31, 39),
    yellow: mark(33, 39),
  });
}

// Control characters but for tab and newline; what some terminals break a line at; what reorders the text or is not seen
// at all, but for the joiners and selectors that scripts and emoji are written with.
const unprintable =
  /[^\P{Cc}\t\n]|[\u2028\u2029\ufff9-\ufffb]|(?![\p{Variation_Selector}\p{Join_Control}])\p{Default_Ignorable_Code_Point}/gu;

/**
 * Text of a model, a tool or another process as a terminal may show it: without the characters that would move the
 * cursor, change the title, or make a command look like another one.
 */
export function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(unprintable, "");
}

/** The same for what a person decides on: such characters are shown as what they are, since they will be passed on. */
export function legible(text: string): string {
  return text.replaceAll(unprintable, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** One line of at most `width` cells, with what was cut marked. */
export function clipped(text: string, width: number): string {
  const line = printable(text).replaceAll(/\s+/g, " ").trim();
  return cellWidth(line) > width ? `${fitting(line, width - 1)}…` : line;
}
