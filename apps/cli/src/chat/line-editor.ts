import { createInterface } from "node:readline";
import type { Interface } from "node:readline";
import { Writable } from "node:stream";
import type { AskLine } from "../approval.ts";
import type { CommandIo } from "../command-io.ts";
import type { Screen } from "../display/screen.ts";
import type { Output } from "../output.ts";

export interface LineListeners {
  onLine(line: string): void;
  /** Ctrl-C as a key. `isEmpty`: nothing was typed. */
  onInterrupt(isEmpty: boolean): void;
  /** Ctrl-D, or the terminal is gone. */
  onEnd(): void;
}

/** What readline draws, let through only while the line it draws on is ours. */
class Echo extends Writable {
  readonly #output: Output;
  isOpen = true;

  constructor(output: Output) {
    super();
    this.#output = output;
  }

  get isTTY(): boolean {
    return this.#output.isTerminal;
  }

  get columns(): number {
    return this.#output.columns;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.isOpen) this.#output.write(chunk.toString("utf8"));
    done();
  }
}

/**
 * The line a person types on, beside output that comes at any time. Between turns there is a prompt. During a turn
 * there is none until a key is pressed: then the output waits, and goes on once the line is sent or emptied again.
 *
 * | state | event | next | effect |
 * | --- | --- | --- | --- |
 * | prompting | line | prompting | `onLine`; the chat says what comes next |
 * | prompting | watch | watching | echo off |
 * | watching | a key that types | composing | output held, prompt and line drawn |
 * | composing | line, or the line is empty again | watching | output released |
 * | watching, composing | prompt | prompting | output released, prompt drawn with what was typed |
 * | watching | ask | asking | the question is drawn; the next line is its answer |
 */
export class LineEditor {
  readonly #screen: Screen;
  readonly #echo: Echo;
  readonly #reader: Interface;
  readonly #prompt: string;
  #state: "prompting" | "watching" | "composing" | "asking" = "watching";
  #answer: ((line: string | undefined) => void) | undefined;
  #composed: (() => void) | undefined;
  #isClosed = false;

  constructor(io: CommandIo, screen: Screen, listeners: LineListeners) {
    this.#screen = screen;
    this.#echo = new Echo(io.stdout);
    this.#prompt = io.stdout.canRedraw ? screen.outStyle.bold("› ") : "> ";
    this.#reader = createInterface({
      input: io.stdin,
      output: this.#echo,
      terminal: io.stdout.canRedraw,
      historySize: 500,
    });
    this.#reader.on("line", (line) => this.#onLine(line, listeners));
    this.#reader.on("SIGINT", () => listeners.onInterrupt(this.#reader.line === ""));
    this.#reader.on("close", () => {
      this.#isClosed = true;
      this.#answer?.(undefined);
      listeners.onEnd();
    });
    // After readline's own listener: the line is up to date.
    if (io.stdout.canRedraw) io.stdin.on("keypress", () => this.#onKey());
    this.#echo.isOpen = !io.stdout.canRedraw;
  }

  /** Shows the prompt: nothing runs, and the next line is a message. */
  prompt(): void {
    if (this.#isClosed) return;
    this.#leaveLine();
    this.#state = "prompting";
    this.#draw(this.#prompt);
  }

  /** A turn runs: no prompt until a key is pressed. */
  watch(): void {
    if (this.#isClosed || !this.#reader.terminal) return;
    this.#state = "watching";
    this.#echo.isOpen = false;
  }

  /** Forgets what was typed. */
  clear(): void {
    this.#reader.write(null, { ctrl: true, name: "e" });
    this.#reader.write(null, { ctrl: true, name: "u" });
  }

  /** Asks in the middle of a turn. */
  readonly ask: AskLine = async (question, signal) => {
    if (this.#state === "composing") await new Promise<void>((resolve) => (this.#composed = resolve));
    if (this.#isClosed || signal.aborted) return undefined;
    return new Promise((resolve) => {
      const end = (line: string | undefined): void => {
        signal.removeEventListener("abort", onAbort);
        this.#answer = undefined;
        this.watch();
        resolve(line);
      };
      const onAbort = (): void => {
        this.#leaveLine();
        end(undefined);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#answer = end;
      this.#state = "asking";
      this.#draw(question);
    });
  };

  close(): void {
    this.#isClosed = true;
    this.#screen.release();
    this.#reader.removeAllListeners("close");
    this.#reader.close();
  }

  #draw(prompt: string): void {
    this.#screen.idle();
    this.#echo.isOpen = true;
    this.#reader.setPrompt(prompt);
    this.#reader.prompt(true);
  }

  #onLine(line: string, listeners: LineListeners): void {
    if (this.#answer) return this.#answer(line);
    if (this.#state === "composing") this.#endComposing();
    listeners.onLine(line);
  }

  #onKey(): void {
    if (this.#isClosed) return;
    if (this.#state === "watching" && this.#reader.line !== "") {
      this.#state = "composing";
      this.#screen.hold();
      this.#draw(this.#prompt);
    } else if (this.#state === "composing" && this.#reader.line === "") {
      this.#leaveLine();
      this.#endComposing();
    }
  }

  #endComposing(): void {
    this.#state = "watching";
    this.#echo.isOpen = !this.#reader.terminal;
    this.#screen.release();
    this.#composed?.();
    this.#composed = undefined;
  }

  /** Wipes the line being typed off the terminal, so that output can take its place. */
  #leaveLine(): void {
    if (this.#state === "watching" || !this.#reader.terminal) return;
    const { rows } = this.#reader.getCursorPos();
    this.#screen.stdout.write(`${rows > 0 ? `\u001b[${rows}A` : ""}\r\u001b[J`);
    if (this.#state === "composing") this.#endComposing();
  }
}
