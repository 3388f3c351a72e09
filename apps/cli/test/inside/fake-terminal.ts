/** A terminal in memory: what is written to it becomes what a person would see, and what a person types comes from it. */
import { PassThrough, Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import type { CommandIo } from "../../src/command-io.ts";
import { graphemesOf, graphemeWidth } from "../../src/display/cell-width.ts";
import { Output } from "../../src/output.ts";
import type { Environment } from "../../src/output.ts";

interface Row {
  /** One entry a cell; the second cell of a wide character is empty. */
  cells: string[];
  /** Whether the row goes on in the next one because the terminal broke it. */
  isBroken: boolean;
}

const emptyRow = (): Row => ({ cells: [], isBroken: false });

/** What xterm and its relatives do with the few sequences that the program may use; throws at any other. */
export class FakeTerminal {
  columns: number;
  rows: number;
  hasPasteMarks = false;
  isRaw = false;
  /** Everything that was written, as it came. */
  written = "";
  readonly io: CommandIo;
  readonly stdin: PassThrough & { isTTY: boolean; setRawMode(isRaw: boolean): void };
  readonly #lines: Row[] = [emptyRow()];
  /** Of the cursor; the row counts from the first line that was ever written. */
  #row = 0;
  #column = 0;
  /** The first line that is on the screen. */
  #top = 0;
  readonly #stream: Writable;
  readonly #signals = new Map<string, Set<() => void>>();
  readonly exitListeners = new Set<() => void>();
  onSuspend = (): void => {};

  constructor(size: { readonly columns: number; readonly rows: number }, environment: Environment = {}) {
    this.columns = size.columns;
    this.rows = size.rows;
    const write = (text: string): void => this.#write(text);
    this.#stream = Object.assign(
      new Writable({
        decodeStrings: false,
        write: (chunk: string | Buffer, _encoding, done) => {
          write(chunk.toString());
          done();
        },
      }),
      { isTTY: true, getWindowSize: (): [number, number] => [this.columns, this.rows] },
    );
    this.stdin = Object.assign(new PassThrough(), {
      isTTY: true,
      setRawMode: (isRaw: boolean) => void (this.isRaw = isRaw),
    });
    const output = new Output(this.#stream as unknown as WriteStream, { TERM: "xterm-256color", ...environment });
    this.io = {
      stdin: this.stdin as unknown as ReadStream,
      stdout: output,
      stderr: output,
      environment,
      workingFolder: "/",
      userFolder: "/",
      onSignal: (signal, listener) => {
        const listeners = this.#signals.get(signal) ?? new Set();
        this.#signals.set(signal, listeners.add(listener));
        return () => void listeners.delete(listener);
      },
      releaseSignals: async () => {},
      suspend: () => this.onSuspend(),
      onExit: (listener) => {
        this.exitListeners.add(listener);
        return () => void this.exitListeners.delete(listener);
      },
      exitNow: (code) => {
        throw new Error(`exit ${code}`);
      },
    };
  }

  /** The lines that are on the screen, without what is empty at the end. */
  get screen(): readonly string[] {
    const shown = this.#lines.slice(this.#top, this.#top + this.rows).map(textOf);
    while (shown.at(-1) === "") shown.pop();
    return shown;
  }

  /** All lines, those that have scrolled away too. */
  get lines(): readonly string[] {
    const shown = this.#lines.map(textOf);
    while (shown.at(-1) === "") shown.pop();
    return shown;
  }

  /** Where the cursor is on the screen. */
  get cursor(): { readonly row: number; readonly column: number } {
    return { row: this.#row - this.#top, column: this.#column };
  }

  /** Types, in one read or in several. */
  type(...pieces: readonly (string | Uint8Array)[]): void {
    for (const piece of pieces) this.stdin.emit("data", Buffer.from(piece));
  }

  signal(name: "SIGCONT" | "SIGINT"): void {
    for (const listener of this.#signals.get(name) ?? []) listener();
  }

  get signalListenerCount(): number {
    return [...this.#signals.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Another size. Lines that were broken are joined and broken anew, as most terminals do. */
  resize(columns: number, rows: number): void {
    const before = this.#lines.splice(0);
    let at = { row: 0, column: 0 };
    for (let index = 0; index < before.length; index++) {
      const cells: string[] = [];
      const start = this.#lines.length;
      let cursorCell: number | undefined;
      for (;;) {
        const row = before[index] ?? emptyRow();
        if (index === this.#row) cursorCell = cells.length + this.#column;
        cells.push(...row.cells);
        if (!row.isBroken || index + 1 >= before.length) break;
        index++;
      }
      do {
        const part = cells.splice(0, columns);
        this.#lines.push({ cells: part, isBroken: cells.length > 0 });
      } while (cells.length > 0);
      if (cursorCell !== undefined)
        at = { row: start + Math.floor(cursorCell / columns), column: cursorCell % columns };
    }
    this.columns = columns;
    this.rows = rows;
    this.#row = at.row;
    this.#column = at.column;
    while (this.#lines.length <= this.#row) this.#lines.push(emptyRow());
    this.#top = Math.max(0, this.#lines.length - rows, this.#row - rows + 1);
    this.#stream.emit("resize");
  }

  #write(text: string): void {
    this.written += text;
    const sequence = /\[(\??)([\d;]*)([A-Za-z])/y;
    let index = 0;
    while (index < text.length) {
      const character = text[index] ?? "";
      if (character === "\u001b") {
        sequence.lastIndex = index + 1;
        const found = sequence.exec(text);
        if (!found) throw new Error(`a terminal is sent ${JSON.stringify(text.slice(index, index + 12))}`);
        this.#control(found[3] ?? "", found[2] ?? "", found[1] === "?");
        index += 1 + found[0].length;
      } else if (character === "\r") {
        this.#column = 0;
        index++;
      } else if (character === "\n") {
        this.#column = 0;
        this.#feed();
        index++;
      } else {
        const next = text.slice(index).search(/[\p{Cc}]/u);
        if (next === 0) throw new Error(`a terminal is sent ${JSON.stringify(character)}`);
        const run = next < 0 ? text.slice(index) : text.slice(index, index + next);
        for (const grapheme of graphemesOf(run)) this.#put(grapheme);
        index += run.length;
      }
    }
  }

  #put(grapheme: string): void {
    const width = graphemeWidth(grapheme);
    if (this.#column + width > this.columns) {
      this.#current.isBroken = true;
      this.#column = 0;
      this.#feed();
    }
    const { cells } = this.#current;
    while (cells.length < this.#column) cells.push(" ");
    cells[this.#column] = grapheme;
    if (width === 2) cells[this.#column + 1] = "";
    this.#column += width;
  }

  get #current(): Row {
    return this.#lines[this.#row] ?? emptyRow();
  }

  #feed(): void {
    this.#row++;
    if (this.#row >= this.#lines.length) this.#lines.push(emptyRow());
    if (this.#row >= this.#top + this.rows) this.#top++;
  }

  #control(final: string, parameters: string, isPrivate: boolean): void {
    const count = Number.parseInt(parameters || "1", 10);
    const column = Math.min(this.#column, this.columns - 1);
    if (isPrivate) {
      if (parameters !== "2004") throw new Error(`a terminal is sent ?${parameters}${final}`);
      this.hasPasteMarks = final === "h";
    } else if (final === "A") this.#row = Math.max(this.#top, this.#row - count);
    else if (final === "B") this.#row = Math.min(this.#lines.length - 1, this.#top + this.rows - 1, this.#row + count);
    else if (final === "C") this.#column = Math.min(this.columns - 1, column + count);
    else if (final === "H") [this.#row, this.#column] = [this.#top, 0];
    else if (final === "K") this.#cut(this.#row, column);
    else if (final === "J" && parameters === "2") {
      for (let row = this.#top; row < this.#lines.length; row++) this.#cut(row, 0);
    } else if (final === "J") {
      this.#cut(this.#row, column);
      for (let row = this.#row + 1; row < this.#lines.length; row++) this.#cut(row, 0);
    } else if (final !== "m") throw new Error(`a terminal is sent ${parameters}${final}`);
  }

  #cut(row: number, column: number): void {
    const line = this.#lines[row];
    if (!line) return;
    line.cells.length = Math.min(line.cells.length, column);
    line.isBroken = false;
  }
}

function textOf({ cells }: Row): string {
  return cells.join("").trimEnd();
}
