import type { Cancel, Host } from "@turnkeeper/kernel";
import type { Output } from "../output.ts";
import { cellWidth } from "./cell-width.ts";
import { clipped, styleOf } from "./style.ts";
import type { Style } from "./style.ts";
import { wordLines } from "./word-lines.ts";

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const frameMs = 100;
/** Shorter waits show nothing: a spinner that flashes is noise. */
const firstFrameMs = 150;

export interface ScreenDeps {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly host: Host;
}

/** The line that a person types on while nothing runs. */
export interface TypedLine {
  /** Takes it off the terminal; the cursor is left where it began. */
  erase(): void;
  paint(): void;
}

/**
 * The result on stdout and everything else on stderr, kept apart where they share a terminal: a note never lands in
 * the middle of a line of the answer, and the spinner is gone before anything is written.
 */
export class Screen {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly outStyle: Style;
  readonly noteStyle: Style;
  readonly #host: Host;
  /** Whether the cursor of the terminal that both streams share stands at the beginning of a line. */
  #atLineStart = true;
  #cancelFrame: Cancel | undefined;
  #label = "";
  #sinceMs = 0;
  /** How many cells of its row the spinner takes; 0: it is not there. */
  #drawnWidth = 0;
  /** What waits while the person types; nothing while output flows. */
  #held: (() => void)[] | undefined;
  #typed: TypedLine | undefined;

  constructor({ stdout, stderr, host }: ScreenDeps) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.#host = host;
    this.outStyle = styleOf(stdout.hasColour);
    this.noteStyle = styleOf(stderr.hasColour);
  }

  /** A piece of the result. */
  result(text: string): void {
    if (text === "") return;
    if (this.#held) return void this.#held.push(() => this.result(text));
    this.#clear();
    this.stdout.write(text);
    if (this.stdout.isTerminal) this.#atLineStart = text.endsWith("\n");
  }

  /** A whole line for the person who watches. */
  note(line: string): void {
    if (this.#held) return void this.#held.push(() => this.note(line));
    this.#clear();
    if (!this.#atLineStart && this.stderr.isTerminal) this.stderr.write("\n");
    if (this.stderr.isTerminal) this.#atLineStart = true;
    this.#typed?.erase();
    this.stderr.line(line);
    this.#typed?.paint();
  }

  /**
   * The same for a sentence, which a terminal gets broken between its words, each line marked. One that names a command
   * to type stays whole: a terminal breaks it without a line break.
   */
  tell(sentence: string, mark: (line: string) => string = (line) => line): void {
    if (this.#held) return void this.#held.push(() => this.tell(sentence, mark));
    const isWhole = !this.stderr.isTerminal || /\bturnkeeper [a-z]/.test(sentence);
    const lines = isWhole ? [sentence] : wordLines(sentence, this.stderr.columns);
    for (const line of lines) this.note(mark(line));
  }

  /** Something that takes time is going on; told by a spinner where there can be one. */
  busy(label: string): void {
    if (!this.stderr.canRedraw) return;
    if (this.#cancelFrame && this.#label === label) return;
    this.idle();
    this.#label = label;
    this.#sinceMs = this.#host.clock.monotonicMs();
    this.#arm(firstFrameMs, 0);
  }

  /** Nothing is going on any more: the spinner goes, and nothing of it stays. */
  idle(): void {
    this.#cancelFrame?.();
    this.#cancelFrame = undefined;
    this.#clear();
  }

  /** Notes are shown above this line from now on; none: nobody types. */
  showAbove(line: TypedLine | undefined): void {
    if (line && !this.#atLineStart) this.stderr.write("\n");
    if (line) this.#atLineStart = true;
    this.#typed = line;
  }

  /** Leaves the terminal to what the person types, on a line of its own, until `release`. */
  hold(): void {
    if (this.#held) return;
    this.#clear();
    if (!this.#atLineStart) this.stderr.write("\n");
    this.#atLineStart = true;
    this.#held = [];
  }

  /** The typed line is gone from the terminal; shows what has waited. */
  release(): void {
    const held = this.#held;
    this.#held = undefined;
    for (const show of held ?? []) show();
  }

  /** Resolves once both readers have caught up. */
  async ready(): Promise<void> {
    await this.stdout.ready();
    await this.stderr.ready();
  }

  #arm(delayMs: number, frame: number): void {
    this.#cancelFrame = this.#host.timers.after(delayMs, () => this.#draw(frame), { keepAlive: false });
  }

  #draw(frame: number): void {
    // Drawn over nothing but its own line: an answer that pauses in mid-line stays as it is.
    if (this.#atLineStart && !this.#held && !this.#typed) {
      const seconds = Math.floor((this.#host.clock.monotonicMs() - this.#sinceMs) / 1000);
      const text = clipped(`${this.#label}${seconds > 0 ? ` ${seconds} s` : ""}`, this.stderr.columns - 3);
      this.#clear();
      this.stderr.write(`${this.noteStyle.cyan(frames[frame % frames.length] ?? "")} ${this.noteStyle.dim(text)}`);
      this.#drawnWidth = 2 + cellWidth(text);
    }
    this.#arm(frameMs, frame + 1);
  }

  #clear(): void {
    if (this.#drawnWidth === 0) return;
    // A terminal that was made narrower has broken the line.
    const above = Math.ceil(this.#drawnWidth / this.stderr.columns) - 1;
    this.stderr.write(above > 0 ? `\u001b[${above}A\r\u001b[J` : "\r\u001b[K");
    this.#drawnWidth = 0;
  }
}
