import { MarkdownStream } from "./markdown-stream.ts";
import { printable } from "./style.ts";
import type { Style } from "./style.ts";

/** How an answer's text becomes what is written: pieces in, pieces out. */
export interface AnswerText {
  write(delta: string): string;
  /** A tool runs, or a message came in between: ends the line; the next text is another paragraph. */
  breakSegment(): string;
  /** Ends the answer with exactly one newline; nothing where there was no text. */
  end(): string;
  readonly isEmpty: boolean;
}

/**
 * The text as the model wrote it, for programs: its last newlines are held back, so that it ends with exactly one
 * whatever it ended with, and texts on both sides of a tool call or of a message stay apart.
 */
export class PlainAnswer implements AnswerText {
  #newlines = "";
  #isBroken = false;
  /** The first half of a character that a provider cut in two. */
  #half = "";
  isEmpty = true;

  write(delta: string): string {
    const come = this.#half + delta;
    const whole = /[\ud800-\udbff]$/.test(come.slice(-1)) ? come.slice(0, -1) : come;
    this.#half = come.slice(whole.length);
    // What a text begins with after a break is the gap, and that is written here.
    const text = this.#isBroken ? whole.replace(/^\n+/, "") : whole;
    const body = text.replace(/\n+$/, "");
    const tail = text.slice(body.length);
    if (body === "") {
      this.#newlines += tail;
      return "";
    }
    const before = this.#isBroken ? "\n" : this.#newlines;
    this.#isBroken = false;
    this.#newlines = tail;
    this.isEmpty = false;
    return before + body;
  }

  breakSegment(): string {
    if (this.isEmpty || this.#isBroken) return "";
    this.#isBroken = true;
    this.#newlines = "";
    return "\n";
  }

  end(): string {
    return this.isEmpty || this.#isBroken ? "" : "\n";
  }
}

/** The text for a person at a terminal: Markdown rendered as it comes, control characters left out. */
export class RenderedAnswer implements AnswerText {
  readonly #style: Style;
  readonly #plain = new PlainAnswer();
  #markdown: MarkdownStream;

  constructor(style: Style) {
    this.#style = style;
    this.#markdown = new MarkdownStream(style);
  }

  get isEmpty(): boolean {
    return this.#plain.isEmpty;
  }

  write(delta: string): string {
    return this.#render(this.#plain.write(printable(delta)));
  }

  breakSegment(): string {
    const shown = this.#render(this.#plain.breakSegment());
    // A code block that was left open does not reach over a tool call.
    if (shown !== "") this.#markdown = new MarkdownStream(this.#style);
    return shown;
  }

  end(): string {
    return this.#render(this.#plain.end());
  }

  #render(text: string): string {
    return this.#style.hasColour ? this.#markdown.write(text) : text;
  }
}
