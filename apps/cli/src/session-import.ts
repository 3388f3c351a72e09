/** Reads what `sessions export` wrote. Not a line of it is believed before it was looked at. */
import { CodedError } from "@turnkeeper/kernel";
import { digestOf } from "@turnkeeper/state-store";
import type { Entry, InputRecord, SessionRecord, SessionRecords, TurnRecord } from "@turnkeeper/state-store";
import { cliError } from "./cli-error.ts";
import { isLineType, lineFault } from "./export-lines.ts";
import type { LineType } from "./export-lines.ts";
import { exportVersion } from "./session-export.ts";

/** The longest line: no entry of a session that can be loaded comes near it. */
const lineBytesMax = 32 * 1024 * 1024;

/** The header as it stands in the file. */
interface Header extends SessionRecord, Pick<SessionRecords, "fencingToken" | "compactionCount" | "summaries"> {
  readonly format: string;
  readonly version: number;
}

function refused(file: string, lineNumber: number, what: string): Error {
  return cliError("USAGE", `Could not import ${file}: line ${lineNumber}: ${what}. Nothing was imported.`);
}

/** Lines of UTF-8, none longer than the bound. */
async function* linesOf(file: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const newline = 0x0a;
  let held: Uint8Array[] = [];
  let heldLength = 0;
  let lineNumber = 1;
  const decode = (last: Uint8Array): string => {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat([...held, last]));
    } catch {
      throw refused(file, lineNumber, "is not valid UTF-8 text");
    }
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
      yield decode(chunk.subarray(from, at));
      held = [];
      heldLength = 0;
      lineNumber++;
      from = at + 1;
    }
    const rest = chunk.subarray(from);
    heldLength += rest.length;
    if (heldLength > lineBytesMax) throw refused(file, lineNumber, `has more than ${lineBytesMax} bytes`);
    if (rest.length > 0) held.push(rest);
  }
  if (heldLength > 0) yield decode(new Uint8Array());
}

/** The line as it stands, with its keys in their order, once it is known to be what it says. */
function rowOf<Row>(value: object): Row {
  const { type: _type, ...row } = value as { readonly type: string };
  return row as Row;
}

class SessionFile {
  readonly #file: string;
  #header: Header | undefined;
  #isEnded = false;
  readonly #inputs: InputRecord[] = [];
  readonly #turns: TurnRecord[] = [];
  readonly #entries: Entry[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  add(line: string, lineNumber: number): void {
    const refuse = (what: string): Error => refused(this.#file, lineNumber, what);
    if (this.#isEnded) throw refuse("stands behind the end of the session");
    const { type, value } = this.#parse(line, refuse);
    if ((type === "session") !== (this.#header === undefined))
      throw refuse(this.#header ? "begins another session; a file has one" : "is not the header of an export");
    switch (type) {
      case "session":
        this.#header = rowOf<Header>(value);
        return;
      case "input":
        this.#inputs.push(this.#own(rowOf<InputRecord>(value), refuse));
        return;
      case "turn":
        this.#turns.push(this.#own(rowOf<TurnRecord>(value), refuse));
        return;
      case "entry":
        this.#entries.push(this.#entry(rowOf<Entry>(value), refuse));
        return;
      case "end": {
        const { lineCount } = rowOf<{ readonly lineCount: number }>(value);
        if (lineCount !== lineNumber - 1) throw refuse(`${lineCount} lines were written before it: some are missing`);
        this.#isEnded = true;
      }
    }
  }

  #parse(line: string, refuse: (what: string) => Error): { readonly type: LineType; readonly value: object } {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw refuse("is no JSON");
    }
    if (typeof value !== "object" || value === null || !("type" in value)) throw refuse("is no object with a type");
    const { type } = value;
    if (!isLineType(type)) throw refuse(`type: ${JSON.stringify(type)} is not known`);
    if (type === "session" && "version" in value && value.version !== exportVersion)
      throw refuse(
        `version: ${JSON.stringify(value.version)} of the export is not known to this turnkeeper, which reads ${exportVersion}; update it`,
      );
    let fault;
    try {
      fault = lineFault(type, value);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      fault = "is nested too deeply";
    }
    if (fault !== undefined) throw refuse(fault);
    return { type, value };
  }

  #own<Row extends { readonly sessionId: string }>(row: Row, refuse: (what: string) => Error): Row {
    if (row.sessionId !== this.#header?.sessionId)
      throw refuse(`sessionId: is of session ${JSON.stringify(row.sessionId)}, not of the file's`);
    return row;
  }

  #entry(entry: Entry, refuse: (what: string) => Error): Entry {
    if (digestOf(entry.body) !== entry.digest) throw refuse("digest: is not that of the body");
    return entry;
  }

  records(sessionId?: string): SessionRecords {
    const header = this.#header;
    if (!header || !this.#isEnded)
      throw cliError(
        "USAGE",
        `Could not import ${this.#file}: ${header ? "its last line is missing, so it is not all of the session" : "it is empty"}. Nothing was imported; export the session again.`,
      );
    const { format: _format, version: _version, fencingToken, compactionCount, summaries, ...session } = header;
    const own = { sessionId: sessionId ?? session.sessionId };
    return {
      session: { ...session, ...own },
      fencingToken,
      inputs: this.#inputs.map((input) => ({ ...input, ...own })),
      turns: this.#turns.map((turn) => ({ ...turn, ...own })),
      compactionCount,
      summaries,
      entries: this.#entries,
    };
  }
}

/**
 * The records of an exported session, under its own id or another. Rejects with `USAGE`, naming line and field, for
 * whatever `sessions export` of this version does not write.
 */
export async function readSessionFile(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  sessionId?: string,
): Promise<SessionRecords> {
  const read = new SessionFile(file);
  let lineNumber = 0;
  for await (const line of linesOf(file, chunks)) read.add(line, ++lineNumber);
  return read.records(sessionId);
}

/** What the store refuses in records is a mistake of the file they came from. */
export function asMistakeOf(file: string, error: unknown): unknown {
  if (!CodedError.is(error, "STORE_CONTRACT")) return error;
  return cliError("USAGE", `Could not import ${file}. ${error.message}`, error);
}
