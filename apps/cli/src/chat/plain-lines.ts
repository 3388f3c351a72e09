import { StringDecoder } from "node:string_decoder";
import type { AskLine } from "../approval.ts";
import type { CommandIo } from "../command-io.ts";
import type { Screen } from "../display/screen.ts";
import { continues } from "./editing/line-editing.ts";
import type { LineInput, LineListeners } from "./line-input.ts";

const promptText = "> ";
const goesOn = ". ";

/**
 * Lines from a terminal whose cursor cannot be moved: the system edits them, and what they hold is read when they are
 * whole. Output does not wait for them. A line that ends with a backslash goes on in the next one.
 */
export class PlainLines implements LineInput {
  readonly #io: CommandIo;
  readonly #screen: Screen;
  readonly #listeners: LineListeners;
  readonly #bytes = new StringDecoder("utf8");
  readonly #undo: () => void;
  #rest = "";
  /** The lines before this one, where a message goes on. */
  #begun = "";
  #answer: ((line: string | undefined) => void) | undefined;

  constructor(deps: { readonly io: CommandIo; readonly screen: Screen }, listeners: LineListeners) {
    const { io } = deps;
    this.#io = io;
    this.#screen = deps.screen;
    this.#listeners = listeners;
    const onData = (chunk: Buffer): void => this.#read(chunk);
    const onEnd = (): void => this.#end();
    io.stdin.on("data", onData).on("end", onEnd);
    this.#undo = () => void io.stdin.removeListener("data", onData).removeListener("end", onEnd).pause();
  }

  prompt(): void {
    this.#screen.idle();
    this.#io.stdout.write(this.#begun === "" ? promptText : goesOn);
  }

  watch(): void {
    // There is nothing to take off the terminal.
  }

  clear(): void {
    this.#begun = "";
  }

  readonly ask: AskLine = (question, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined);
      const end = (line: string | undefined): void => {
        signal.removeEventListener("abort", onAbort);
        this.#answer = undefined;
        resolve(line);
      };
      const onAbort = (): void => {
        this.#io.stdout.write("\n");
        end(undefined);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#answer = (line) => (line === undefined ? onAbort() : end(line));
      this.#screen.idle();
      this.#io.stdout.write(question);
    });

  close(): void {
    this.#undo();
    this.#answer?.(undefined);
  }

  #read(chunk: Buffer): void {
    const lines = (this.#rest + this.#bytes.write(chunk)).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(line.replaceAll(/[^\P{Cc}\t]/gu, ""));
  }

  #take(line: string): void {
    if (this.#answer) return this.#answer(line);
    const text = this.#begun + line;
    if (continues(line)) {
      this.#begun = `${text.slice(0, -1)}\n`;
      this.#io.stdout.write(goesOn);
      return undefined;
    }
    this.#begun = "";
    return this.#listeners.onLine(text);
  }

  #end(): void {
    this.#answer?.(undefined);
    this.#listeners.onEnd();
  }
}
