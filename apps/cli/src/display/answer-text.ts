import { MarkdownStream } from "./markdown-stream.ts";
import { printable } from "./style.ts";
import type { Style } from "./style.ts";

/** How an answer's text becomes what is written: pieces in, pieces out. */
export interface AnswerText {
  write(delta: string): string;
  /** A tool ran, or a steering message came in: the next text is another paragraph. */
  breakSegment(): string;
  /** Ends the answer with exactly one newline; nothing where there was no text. */
  end(): string;
  readonly isEmpty: boolean;
}

/**
 * The text as the model wrote it, for programs: its last newlines are held back, so that it ends with exactly one
 * whatever it ended with, and texts on both sides of a tool call stay apart.
 */
export class PlainAnswer implements AnswerText {
  readonly #gap: string;
  #newlines = "";
  #isBroken = false;
  isEmpty = true;

  /** `gap` stands between two texts with a tool call between them. */
  constructor(gap = "\n\n") {
    this.#gap = gap;
  }

  write(delta: string): string {
    const body = delta.replace(/\n+$/, "");
    const tail = delta.slice(body.length);
    if (body === "") {
      if (!this.#isBroken) this.#newlines += tail;
      return "";
    }
    const before = this.#isBroken ? this.#gap : this.#newlines;
    this.#isBroken = false;
    this.#newlines = tail;
    this.isEmpty = false;
    return before + body;
  }

  breakSegment(): string {
    if (!this.isEmpty) this.#isBroken = true;
    return "";
  }

  end(): string {
    return this.isEmpty ? "" : "\n";
  }
}

/** The text for a person at a terminal: Markdown rendered as it comes, control characters left out. */
export class RenderedAnswer implements AnswerText {
  readonly #style: Style;
  // The tool's own lines have ended the line of the text before it.
  readonly #plain = new PlainAnswer("\n");
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
    if (this.isEmpty) return "";
    this.#plain.breakSegment();
    // What was held back belongs to the text before the tool ran; the line ends so that the tool's own lines can come.
    const rest = this.#style.hasColour ? this.#markdown.end() : "";
    this.#markdown = new MarkdownStream(this.#style);
    return rest;
  }

  end(): string {
    const rest = this.#style.hasColour ? this.#markdown.end() : "";
    return this.isEmpty ? "" : `${rest}\n`;
  }

  #render(text: string): string {
    return this.#style.hasColour ? this.#markdown.write(text) : text;
  }
}
