import type { Style } from "./style.ts";

interface Spans {
  isBold: boolean;
  isItalic: boolean;
  isStruck: boolean;
  isHeading: boolean;
  /** The run of backticks that will close the code. */
  code: string | undefined;
}

const plain = (): Spans => ({ isBold: false, isItalic: false, isStruck: false, isHeading: false, code: undefined });

const marker = /[*_~`\\[]/;
const link = /^\[([^\]\n]*)\]\(([^)\s]*)\)/;
const longestLink = 400;
const isWord = (character: string | undefined): boolean => character !== undefined && /[\p{L}\p{N}]/u.test(character);
const isSpace = (character: string | undefined): boolean => character === undefined || /\s/.test(character);

/**
 * The marks inside a line: emphasis, code, strike, links, escapes. Holds back only what the next character may change
 * (a run of marks at the end, an unfinished link). Marks that never close end with their block.
 */
export class InlineMarkdown {
  readonly #style: Style;
  #spans: Spans = plain();
  #held = "";
  #last: string | undefined;

  constructor(style: Style) {
    this.#style = style;
  }

  /** Forgets open marks: a block has ended. */
  reset(): void {
    this.#spans = plain();
    this.#last = undefined;
  }

  write(text: string, options: { readonly isHeading?: boolean } = {}): string {
    if (options.isHeading) this.#spans.isHeading = true;
    this.#held += text;
    return this.#take(false);
  }

  /** Shows what was held back; a heading and the beginning of a word end with the line. */
  endLine(): string {
    const shown = this.#take(true);
    this.#spans.isHeading = false;
    this.#last = undefined;
    return shown;
  }

  #take(isWhole: boolean): string {
    const text = this.#held;
    let shown = "";
    let index = 0;
    while (index < text.length) {
      const step =
        this.#spans.code === undefined ? this.#step(text, index, isWhole) : this.#codeStep(text, index, isWhole);
      if (step === undefined) break;
      shown += step.shown;
      index = step.next;
      this.#last = text[index - 1];
    }
    this.#held = text.slice(index);
    return shown;
  }

  /** What stands at `index` and where it ends; nothing when the next characters must be seen first. */
  #step(text: string, index: number, isWhole: boolean): { readonly shown: string; readonly next: number } | undefined {
    const character = text[index] ?? "";
    if (!marker.test(character)) {
      const rest = text.slice(index).search(marker);
      const next = rest < 0 ? text.length : index + rest;
      return { shown: this.#marked(text.slice(index, next)), next };
    }
    if (character === "\\") {
      const escaped = text[index + 1];
      if (escaped === undefined && !isWhole) return undefined;
      const isEscape = escaped !== undefined && /[\p{P}\p{S}]/u.test(escaped);
      return isEscape
        ? { shown: this.#marked(escaped), next: index + 2 }
        : { shown: this.#marked("\\"), next: index + 1 };
    }
    if (character === "[") return this.#link(text, index, isWhole);
    let next = index;
    while (text[next] === character) next++;
    // The run may go on, and what follows it decides whether it opens or closes.
    if (next === text.length && !isWhole) return undefined;
    const run = text.slice(index, next);
    return { shown: this.#toggle(run, text[index - 1] ?? this.#last, text[next]), next };
  }

  #codeStep(
    text: string,
    index: number,
    isWhole: boolean,
  ): { readonly shown: string; readonly next: number } | undefined {
    const code = this.#spans.code ?? "`";
    if (text[index] !== "`") {
      const tick = text.indexOf("`", index);
      const next = tick < 0 ? text.length : tick;
      return { shown: this.#marked(text.slice(index, next)), next };
    }
    let next = index;
    while (text[next] === "`") next++;
    if (next === text.length && !isWhole) return undefined;
    const run = text.slice(index, next);
    if (run !== code) return { shown: this.#marked(run), next };
    this.#spans.code = undefined;
    return { shown: "", next };
  }

  /** Opens or closes what the run means there, or shows it as it is. */
  #toggle(run: string, before: string | undefined, after: string | undefined): string {
    const spans = this.#spans;
    if (run.startsWith("`")) {
      spans.code = run;
      return "";
    }
    const canOpen = !isSpace(after);
    const canClose = !isSpace(before);
    // snake_case and 2*3*4 are no emphasis.
    const isInside = run.startsWith("_") ? isWord(before) && isWord(after) : false;
    const isOpen = run.startsWith("~")
      ? spans.isStruck
      : run.length === 1
        ? spans.isItalic
        : run.length === 2
          ? spans.isBold
          : spans.isBold && spans.isItalic;
    const known = run.startsWith("~") ? run.length === 2 : run.length <= 3;
    if (!known || isInside || (isOpen ? !canClose : !canOpen)) return this.#marked(run);
    if (run.startsWith("~")) spans.isStruck = !isOpen;
    else {
      if (run.length !== 2) spans.isItalic = !isOpen;
      if (run.length !== 1) spans.isBold = !isOpen;
    }
    return "";
  }

  #link(text: string, index: number, isWhole: boolean): { readonly shown: string; readonly next: number } | undefined {
    const rest = text.slice(index);
    const found = link.exec(rest);
    if (found) {
      const [all, label = "", address = ""] = found;
      const shown =
        label === address || label === ""
          ? this.#style.underline(address)
          : `${this.#style.underline(label)} ${this.#style.dim(`(${address})`)}`;
      return { shown, next: index + all.length };
    }
    const mayBecome = /^\[[^\]\n]*(?:\]|\]\([^)\s]*)?$/.test(rest) && rest.length < longestLink;
    return mayBecome && !isWhole ? undefined : { shown: this.#marked("["), next: index + 1 };
  }

  #marked(text: string): string {
    const { isBold, isItalic, isStruck, isHeading, code } = this.#spans;
    const style = this.#style;
    if (code !== undefined) return style.cyan(text);
    let shown = text;
    if (isItalic) shown = style.italic(shown);
    if (isStruck) shown = style.strike(shown);
    if (isBold || isHeading) shown = style.bold(shown);
    return isHeading ? style.underline(shown) : shown;
  }
}
