import { InlineMarkdown } from "./inline-markdown.ts";
import type { Style } from "./style.ts";

/** What may still turn out to be a heading, a list item, a fence, a quote or a rule. */
const undecided = /^[\s#>`~*+\-_\d.)]*$/;
const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
/** Whether it is one, its whole line tells. */
const fenceStart = /^ {0,3}(?:`{3}|~{3})/;
const heading = /^ {0,3}(#{1,6})\s+/;
const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;
const quote = /^ {0,3}>\s?/;
const rule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;

/**
 * Markdown as it streams in, rendered for a terminal as far as it is decided: text appears as soon as no later
 * character can change how it looks, a line of code when the line is whole. One stream for each answer.
 */
export class MarkdownStream {
  readonly #style: Style;
  readonly #inline: InlineMarkdown;
  /** The part of the current line that is not rendered yet. */
  #line = "";
  /** Whether the beginning of the current line has been rendered. */
  #isInLine = false;
  #fence: string | undefined;
  #wasBlank = true;

  constructor(style: Style) {
    this.#style = style;
    this.#inline = new InlineMarkdown(style);
  }

  /** Takes the next piece; answers what can be shown now. */
  write(delta: string): string {
    let shown = "";
    const lines = (this.#line + delta).split("\n");
    this.#line = lines.pop() ?? "";
    for (const line of lines) shown += `${this.#rest(line)}\n`;
    return shown + this.#progress();
  }

  /** Answers what was held back. */
  end(): string {
    const shown = this.#line === "" && !this.#isInLine ? "" : this.#rest(this.#line);
    this.#line = "";
    return shown;
  }

  /** The rest of a line that is whole now. */
  #rest(line: string): string {
    if (this.#isInLine) {
      this.#isInLine = false;
      return this.#inline.write(line) + this.#inline.endLine();
    }
    if (this.#fence !== undefined) return this.#code(line);
    if (line.trim() === "") {
      this.#inline.reset();
      this.#wasBlank = true;
      return line;
    }
    const opened = fence.exec(line);
    if (opened) {
      this.#fence = opened[1] ?? "";
      this.#inline.reset();
      return this.#style.dim(line.trim());
    }
    if (rule.test(line)) return this.#style.dim("─".repeat(40));
    return this.#begin(line) + this.#inline.endLine();
  }

  #code(line: string): string {
    const closed = fence.exec(line);
    if (closed?.[1]?.startsWith(this.#fence ?? "") && closed[2] === "") {
      this.#fence = undefined;
      return this.#style.dim(line.trim());
    }
    return this.#style.cyan(line);
  }

  /** What of an unfinished line can be shown. */
  #progress(): string {
    if (this.#fence !== undefined || this.#line === "") return "";
    if (!this.#isInLine && (undecided.test(this.#line) || fenceStart.test(this.#line))) return "";
    const line = this.#line;
    this.#line = "";
    if (this.#isInLine) return this.#inline.write(line);
    this.#isInLine = true;
    return this.#begin(line);
  }

  /** The beginning of a line: what block it is, and its first text. */
  #begin(line: string): string {
    const wasBlank = this.#wasBlank;
    this.#wasBlank = false;
    const title = heading.exec(line);
    if (title) {
      this.#inline.reset();
      return this.#inline.write(line.slice(title[0].length), { isHeading: true });
    }
    const point = item.exec(line);
    if (point) {
      this.#inline.reset();
      const [all, indent = "", mark = ""] = point;
      const bullet = /\d/.test(mark) ? mark : "•";
      return `${indent}${this.#style.dim(bullet)} ${this.#inline.write(line.slice(all.length))}`;
    }
    const cited = quote.exec(line);
    if (cited) {
      this.#inline.reset();
      return `${this.#style.dim("│ ")}${this.#inline.write(line.slice(cited[0].length))}`;
    }
    // After a blank line four spaces are code; within a paragraph they are only indentation.
    if (wasBlank) this.#inline.reset();
    return this.#inline.write(line);
  }
}
