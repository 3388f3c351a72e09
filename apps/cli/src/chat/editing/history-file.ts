import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import path from "node:path";
import { systemCodeOf } from "../../cli-error.ts";
import { historyCountMax } from "./chat-history.ts";
import type { HistoryStore } from "./chat-history.ts";

/**
 * One line a text, `{"v":1,"text":"…"}`. History of `v`: 1, the first. A line that is none, or of a version that is not
 * known, is passed over.
 */
const version = 1;
/** A longer text stays in memory: it is a file's content rather than something to type again. */
const textBytesMax = 16_384;
/** What is read at the start. It is made anew when it has grown to twice what is kept. */
const fileBytesMax = 4_194_304;

const openFlags =
  constants.O_APPEND | constants.O_CREAT | constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;

function lineOf(text: string): string {
  return `${JSON.stringify({ v: version, text })}\n`;
}

function textOf(line: string): string | undefined {
  try {
    const entry = JSON.parse(line) as { readonly v?: unknown; readonly text?: unknown } | null;
    return entry?.v === version && typeof entry.text === "string" ? entry.text : undefined;
  } catch {
    // Cut off by a crash, or by the bound of what is read.
    return undefined;
  }
}

/**
 * The history in a file that only its owner reads, shared by all chats of a home: each text is appended in one write,
 * and a chat sees what others added when it starts. A home that is missing is not made for it. What goes wrong is told
 * once; the chat goes on without the file.
 */
export class HistoryFile implements HistoryStore {
  readonly #file: string;
  readonly #tell: (problem: string) => void;
  #isLost = false;
  readonly texts: readonly string[];

  constructor(home: string, tell: (problem: string) => void) {
    this.#file = path.join(home, "chat-history.jsonl");
    this.#tell = tell;
    this.texts = this.#attempt("read", (handle) => this.#read(handle)) ?? [];
  }

  add(text: string): void {
    const line = lineOf(text);
    if (Buffer.byteLength(line) <= textBytesMax) this.#attempt("write", (handle) => writeSync(handle, line));
  }

  /** Opened each time: another chat may have put a shorter one in its place. */
  #attempt<Result>(what: string, work: (handle: number) => Result): Result | undefined {
    if (this.#isLost) return undefined;
    try {
      const handle = openSync(this.#file, openFlags, 0o600);
      try {
        const stats = fstatSync(handle);
        if (!stats.isFile()) throw new Error("it is no regular file");
        // Made by hand, or copied under another mask.
        if ((stats.mode & 0o077) !== 0) fchmodSync(handle, 0o600);
        return work(handle);
      } finally {
        closeSync(handle);
      }
    } catch (error) {
      this.#isLost = true;
      const why = systemCodeOf(error) ?? (error instanceof Error ? error.message : String(error));
      if (why !== "ENOENT")
        this.#tell(
          `Could not ${what} the history ${this.#file} (${why}); what is sent in this chat is not kept there.`,
        );
      return undefined;
    }
  }

  #read(handle: number): readonly string[] {
    const { size } = fstatSync(handle);
    const from = Math.max(0, size - fileBytesMax);
    const bytes = Buffer.alloc(size - from);
    const length = readSync(handle, bytes, 0, bytes.length, from);
    const lines = bytes.toString("utf8", 0, length).split("\n");
    // A crash may have left a line without its end: what is added next must not be lost with it.
    if (lines.at(-1) !== "") writeSync(handle, "\n");
    const texts = lines
      .map(textOf)
      .filter((text) => text !== undefined)
      .slice(-historyCountMax);
    if (from > 0 || lines.length > 2 * historyCountMax) this.#shorten(handle, texts);
    return texts;
  }

  /** Puts a file with what is kept in its place, unless another chat has added to it meanwhile. */
  #shorten(handle: number, texts: readonly string[]): void {
    const { size } = fstatSync(handle);
    const next = `${this.#file}.${process.pid}.tmp`;
    rmSync(next, { force: true });
    writeFileSync(next, texts.map(lineOf).join(""), { flag: "wx", mode: 0o600 });
    if (fstatSync(handle).size === size) renameSync(next, this.#file);
    else rmSync(next);
  }
}
