import type { AskLine } from "../approval.ts";

/** What a person's typing comes to. */
export interface LineListeners {
  /** A line was sent; it may hold line breaks. */
  onLine(line: string): void;
  /** Ctrl-C as a key. `isEmpty`: nothing was typed. */
  onInterrupt(isEmpty: boolean): void;
  /** Ctrl-D on an empty line. Where the system edits the lines it cannot be told from a terminal that is gone. */
  onEnd(): void;
  /** The terminal is gone. */
  onHangUp(): void;
}

/** Where a person types, beside output that comes at any time. */
export interface LineInput {
  /** Nothing runs, and the next line is a message. */
  prompt(): void;
  /** A turn runs. */
  watch(): void;
  /** Forgets what was typed. */
  clear(): void;
  /** Asks in the middle of a turn; what is answered is remembered nowhere. */
  readonly ask: AskLine;
  close(): void;
}
