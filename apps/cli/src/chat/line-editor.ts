import type { Cancel, Host } from "@turnkeeper/kernel";
import type { AskLine } from "../approval.ts";
import type { CommandIo } from "../command-io.ts";
import { cellWidth } from "../display/cell-width.ts";
import type { Screen } from "../display/screen.ts";
import { clipped } from "../display/style.ts";
import type { ChatHistory } from "./editing/chat-history.ts";
import { KeyDecoder } from "./editing/key-decoder.ts";
import type { Key } from "./editing/key-decoder.ts";
import { LineEditing } from "./editing/line-editing.ts";
import { PaintedRows } from "./editing/painted-rows.ts";
import type { PaintedRow } from "./editing/painted-rows.ts";
import { TerminalMode } from "./editing/terminal-mode.ts";
import { TextLayout } from "./editing/text-layout.ts";
import { placeOf, textRows } from "./editing/text-rows.ts";
import type { CellPlace } from "./editing/text-rows.ts";
import type { LineInput, LineListeners } from "./line-input.ts";

/** What begins with Escape may come in two pieces, over a slow line; a person waits for nothing after Escape alone. */
const escapeAloneMs = 500;

export interface LineEditorDeps {
  readonly io: CommandIo;
  readonly screen: Screen;
  readonly host: Host;
  readonly history: ChatHistory;
}

export interface LineEditorOptions {
  /** What Tab completes at the beginning of a line. */
  readonly completions: readonly string[];
}

/** What stands before the text, as it is measured and as it is written. */
interface Prompt {
  readonly text: string;
  readonly shown: string;
}

interface PaintedView {
  readonly rows: readonly PaintedRow[];
  readonly cursor: CellPlace;
}

/**
 * The line, or lines, that a person types on, beside output that comes at any time. Between turns there is a prompt.
 * During a turn there is none until a key is pressed: then the output waits, and goes on once the text is sent or
 * emptied again.
 *
 * | state | event | next | effect |
 * | --- | --- | --- | --- |
 * | watching | prompt | prompting | prompt drawn; notes go above it |
 * | prompting | a line is sent | watching | `onLine`; the chat says what comes next |
 * | watching | a key that types | composing | output held, prompt and text drawn |
 * | composing | the text is sent, or is empty again | watching | output released |
 * | composing | prompt | prompting | output released, prompt drawn with what was typed |
 * | watching | ask | asking | output held, the question drawn; the next line is its answer |
 * | prompting | ask | asking | the same; the prompt comes back with what was typed |
 * | asking | prompt | asking | the prompt comes once it is answered |
 * | asking | answered, or the question is moot | watching, prompting | output released |
 */
export class LineEditor implements LineInput {
  readonly #io: CommandIo;
  readonly #screen: Screen;
  readonly #host: Host;
  readonly #listeners: LineListeners;
  readonly #decoder = new KeyDecoder();
  readonly #message: LineEditing;
  readonly #layout = new TextLayout();
  readonly #painted: PaintedRows;
  readonly #mode: TerminalMode;
  readonly #prompt: Prompt;
  readonly #undo: readonly (() => void)[];
  #state: "watching" | "prompting" | "composing" | "asking" = "watching";
  #question: { readonly prompt: Prompt; readonly line: LineEditing; end(answer: string | undefined): void } | undefined;
  /** The prompt comes once the question is answered. */
  #isPromptDue = false;
  #composed: (() => void) | undefined;
  #cancelEscape: Cancel | undefined;
  /** The first row of the text that is shown, where not all fit on the terminal. */
  #top = 0;
  #isClosed = false;

  constructor(
    { io, screen, host, history }: LineEditorDeps,
    { completions }: LineEditorOptions,
    listeners: LineListeners,
  ) {
    this.#io = io;
    this.#screen = screen;
    this.#host = host;
    this.#listeners = listeners;
    this.#prompt = { text: "› ", shown: screen.outStyle.bold("› ") };
    this.#message = new LineEditing({ history, completions, columns: () => this.#columnsAfter(this.#prompt) });
    this.#painted = new PaintedRows(io.stdout);
    this.#mode = new TerminalMode(io, host, () => this.#repaint());
    const onData = (chunk: Buffer): void => this.#read(chunk);
    // Ctrl-D is a key here: a terminal that ends is gone. What it was asked is left for whoever answers elsewhere.
    const onEnd = (): void => listeners.onHangUp();
    io.stdin.on("data", onData).on("end", onEnd);
    this.#undo = [
      io.stdout.onResize(() => this.#paint()),
      () => void io.stdin.removeListener("data", onData).removeListener("end", onEnd).pause(),
    ];
  }

  prompt(): void {
    if (this.#isClosed) return;
    this.#isPromptDue = this.#question !== undefined;
    if (this.#isPromptDue) return;
    this.#leaveLine();
    this.#screen.idle();
    this.#state = "prompting";
    this.#screen.showAbove({ erase: () => this.#painted.erase(), paint: () => this.#paint() });
    this.#paint();
  }

  watch(): void {
    if (!this.#isClosed) this.#leaveLine();
  }

  clear(): void {
    this.#message.clear();
    this.#afterEdit();
    this.#paint();
  }

  readonly ask: AskLine = async (question, signal) => {
    if (this.#state === "composing") await new Promise<void>((resolve) => (this.#composed = resolve));
    if (this.#isClosed || signal.aborted) return undefined;
    this.#isPromptDue = this.#state === "prompting";
    this.#leaveLine();
    return new Promise((resolve) => {
      const end = (answer: string | undefined): void => {
        signal.removeEventListener("abort", onAbort);
        this.#question = undefined;
        // What was asked and answered stays to be read.
        this.#painted.leave();
        this.#state = "watching";
        this.#screen.release();
        if (this.#isPromptDue) this.prompt();
        resolve(answer);
      };
      const onAbort = (): void => end(undefined);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#question = { prompt: { text: question, shown: question }, line: this.#answerLine(), end };
      this.#screen.idle();
      this.#screen.hold();
      this.#state = "asking";
      this.#paint();
    });
  };

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelEscape?.();
    this.#question?.end(undefined);
    this.#painted.leave();
    this.#screen.showAbove(undefined);
    this.#screen.release();
    this.#composed?.();
    for (const undo of this.#undo) undo();
    this.#mode.close();
  }

  #read(chunk: Buffer): void {
    this.#cancelEscape?.();
    this.#cancelEscape = undefined;
    this.#takeAll(this.#decoder.decode(chunk));
    if (!this.#decoder.isWaiting || this.#isClosed) return;
    const { timers } = this.#host;
    // What came while this process was busy waits to be read, and may be the rest of the key.
    const judge = (): void => void (this.#cancelEscape = timers.afterPoll(() => this.#takeAll(this.#decoder.flush())));
    this.#cancelEscape = timers.after(escapeAloneMs, judge, { keepAlive: false });
  }

  #takeAll(keys: readonly Key[]): void {
    for (const key of keys) if (!this.#isClosed) this.#take(key);
    // A paste comes in many pieces, and is drawn once.
    if (!this.#decoder.isPasting) this.#paint();
  }

  #take(key: Key): void {
    const line = this.#question?.line ?? this.#message;
    const outcome = line.take(key);
    switch (outcome.kind) {
      case "edited":
        return this.#afterEdit();
      case "sent":
        return this.#send(outcome.text);
      case "interrupted":
        return this.#listeners.onInterrupt(line.isEmpty);
      case "ended":
        return this.#question ? this.#question.end(undefined) : this.#listeners.onEnd();
      case "suspended":
        this.#painted.leave();
        return this.#mode.suspend();
      case "cleared-screen":
        this.#painted.forget();
        if (this.#state !== "watching") this.#io.stdout.write("\u001b[H\u001b[2J");
        return undefined;
    }
  }

  #afterEdit(): void {
    if (this.#state === "watching" && !this.#message.isEmpty) {
      this.#state = "composing";
      this.#screen.hold();
    } else if (this.#state === "composing" && this.#message.isEmpty) this.#leaveLine();
  }

  #send(text: string): void {
    if (this.#state === "watching") return;
    // As it was sent, with the cursor behind it.
    this.#paintRows(this.#rowsOf(this.#question?.prompt ?? this.#prompt, text, text.length));
    if (this.#question) return this.#question.end(text);
    this.#painted.leave();
    this.#leaveLine();
    this.#listeners.onLine(text);
  }

  /** Wipes the text off the terminal, so that output can take its place; it is kept, and drawn with the next prompt. */
  #leaveLine(): void {
    if (this.#state === "watching") return;
    this.#painted.erase();
    this.#state = "watching";
    this.#top = 0;
    this.#screen.showAbove(undefined);
    this.#screen.release();
    this.#composed?.();
    this.#composed = undefined;
  }

  #repaint(): void {
    this.#painted.forget();
    this.#paint();
  }

  #paint(): void {
    if (this.#isClosed || this.#state === "watching") return;
    const { prompt, line } = this.#question ?? { prompt: this.#prompt, line: this.#message };
    this.#paintRows(this.#rowsOf(prompt, line.text, line.cursor, line.hint));
  }

  #paintRows({ rows, cursor }: PaintedView): void {
    this.#painted.paint(rows, cursor);
  }

  #columnsAfter(prompt: Prompt): number {
    const columns = this.#io.stdout.columns - 1;
    return columns - marginOf(prompt, columns).length;
  }

  /** What is painted: the prompt, as much of the text as fits on the terminal around the cursor, and the hint below. */
  #rowsOf(prompt: Prompt, text: string, cursor: number, hint?: string): PaintedView {
    const columns = this.#io.stdout.columns - 1;
    const margin = marginOf(prompt, columns);
    const hasOwnRows = cellWidth(prompt.text) > margin.length;
    const head = hasOwnRows
      ? textRows(prompt.text.trimEnd(), columns).map(({ shown, width }) => ({ text: shown, width }))
      : [];
    const below = hint === undefined ? [] : [this.#hintRow(hint, columns)];
    const height = Math.max(1, this.#io.stdout.rows - 1 - head.length - below.length);
    const rows = this.#layout.rowsOf(text, columns - margin.length, { offset: cursor, rowCount: height });
    const place = placeOf(text, rows, cursor);
    this.#top = Math.max(0, Math.min(this.#top, place.row, rows.length - height), place.row - height + 1);
    const body = rows.slice(this.#top, this.#top + height).map(({ shown, width }, index): PaintedRow => ({
      text: (index + this.#top === 0 && !hasOwnRows ? prompt.shown : margin) + shown,
      width: margin.length + width,
    }));
    return {
      rows: [...head, ...body, ...below],
      cursor: { row: head.length + place.row - this.#top, column: margin.length + place.column },
    };
  }

  #hintRow(hint: string, columns: number): PaintedRow {
    const text = clipped(hint, columns);
    return { text: this.#screen.outStyle.dim(text), width: cellWidth(text) };
  }

  #answerLine(): LineEditing {
    return new LineEditing({ columns: () => this.#columnsAfter(this.#question?.prompt ?? this.#prompt) });
  }
}

/** What stands before the rows of the text that the prompt does not: as wide as it, unless it would leave no room. */
function marginOf(prompt: Prompt, columns: number): string {
  const width = cellWidth(prompt.text);
  return " ".repeat(width > columns / 2 ? 2 : width);
}
