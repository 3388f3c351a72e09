import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { searchTerms, snippetOf } from "@turnkeeper/state-store";
import type { SearchHit, SearchOptions, SearchPage, StoreErrorCode } from "@turnkeeper/state-store";
import { entryColumns, entryOf } from "./entry-rows.ts";
import type { EntryRow } from "./entry-rows.ts";
import { gramQuery } from "./search-grams.ts";
import {
  bodyText,
  findCandidates,
  markBroken,
  readIndexState,
  SearchIndexBroken,
  takeInPiece,
} from "./search-index.ts";
import { findSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { storeError } from "./store-failure.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Transaction } from "./transaction.ts";

const defaultLimit = 100;

/** So many entries are read faster than they are taken into the index. */
const worthIndexing = 256;
/** What one search takes in at most, about a third of a second; it reads the rest, and the next one goes on. */
const catchUpPieces = 128;

/** What one read transaction looks at: a few milliseconds. */
const scanCount = 256;
const scanLength = 256 * 1024;
const candidateCount = 32;

interface FoundRow extends EntryRow {
  readonly entry_no: number;
  readonly session_id: string;
}

interface Hit extends SearchHit {
  readonly entryNo: number;
}

/** What is looked for, and from where downwards. */
interface Ask {
  readonly terms: readonly string[];
  readonly sessionId: string | undefined;
  readonly beforeNo: number;
  readonly wantedCount: number;
  readonly usesIndex: boolean;
}

interface Piece {
  readonly hits: readonly Hit[];
  /** Where the next piece begins; 0 when there is none. */
  readonly beforeNo: number;
}

const columns = `entry_no, session_id, ${entryColumns}`;
const newestFirst = `SELECT ${columns} FROM entry CROSS JOIN session USING (session_no)
  WHERE entry_no < ? ORDER BY entry_no DESC LIMIT ?`;
/** By its own index; the subquery finds the place in it where the piece before ended. */
const newestOfSession = `SELECT ${columns} FROM session CROSS JOIN entry USING (session_no)
  WHERE session_no = ? AND entry_no < ?
    AND seq < coalesce((SELECT seq FROM entry WHERE entry_no = ? AND session_no = ?), 9007199254740991)
  ORDER BY seq DESC LIMIT ?`;
const byNumber = `SELECT ${columns} FROM entry JOIN session USING (session_no) WHERE entry_no = ?`;

function hitOf(row: FoundRow, terms: readonly string[]): Hit[] {
  const snippet = snippetOf(bodyText(row.body), terms);
  return snippet === undefined
    ? []
    : [{ sessionId: row.session_id, entry: entryOf(row), snippet, entryNo: row.entry_no }];
}

/** Reads entries themselves, down to those that the index knows. */
function scanPiece(tx: Transaction, ask: Ask, session: SessionRow | undefined, throughNo: number): Piece {
  const { terms, beforeNo, wantedCount } = ask;
  const hits: Hit[] = [];
  let length = 0;
  let lastNo = 0;
  let count = 0;
  const no = session?.session_no ?? 0;
  const rows = session
    ? tx.rows.iterate<FoundRow>(newestOfSession, no, beforeNo, beforeNo, no, scanCount)
    : tx.rows.iterate<FoundRow>(newestFirst, beforeNo, scanCount);
  for (const row of rows) {
    if (row.entry_no <= throughNo) return { hits, beforeNo: throughNo + 1 };
    hits.push(...hitOf(row, terms));
    length += row.body.length;
    lastNo = row.entry_no;
    count++;
    if (hits.length >= wantedCount || length >= scanLength) return { hits, beforeNo: lastNo };
  }
  return { hits, beforeNo: count === scanCount ? lastNo : 0 };
}

/** Looks up what the index finds: it filters, and the text decides. */
function lookUpPiece(tx: Transaction, ask: Ask, query: string): Piece {
  const { terms, beforeNo, wantedCount } = ask;
  const candidates = findCandidates(tx, query, beforeNo, candidateCount);
  const hits: Hit[] = [];
  let length = 0;
  for (const entryNo of candidates) {
    const row = tx.rows.get<FoundRow>(byNumber, entryNo);
    const isAsked = row !== undefined && row.session_id === (ask.sessionId ?? row.session_id);
    if (isAsked) hits.push(...hitOf(row, terms));
    length += row?.body.length ?? 0;
    if (hits.length >= wantedCount || length >= scanLength) return { hits, beforeNo: entryNo };
  }
  return { hits, beforeNo: candidates.length === candidateCount ? (candidates.at(-1) ?? 0) : 0 };
}

function readPiece(tx: Transaction, ask: Ask): Piece {
  const session = ask.sessionId === undefined ? undefined : findSession(tx, ask.sessionId);
  if (ask.sessionId !== undefined && !session) return { hits: [], beforeNo: 0 };
  const query = ask.usesIndex ? gramQuery(ask.terms, session?.session_no) : undefined;
  const throughNo = query === undefined ? 0 : readIndexState(tx).throughNo;
  if (query === undefined || ask.beforeNo > throughNo + 1) return scanPiece(tx, ask, session, throughNo);
  return lookUpPiece(tx, ask, query);
}

function placeOf(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  if (/^[1-9]\d{0,14}$/.test(cursor)) return Number(cursor);
  throw storeError("STORE_CONTRACT", `Not a cursor of this search: ${JSON.stringify(cursor)}.`);
}

/** Searches entries and keeps the index near them, both in pieces between which the event loop runs. */
export class EntrySearch {
  readonly #handle: StoreHandle;
  readonly #host: Host;

  constructor(handle: StoreHandle, host: Host) {
    this.#handle = handle;
    this.#host = host;
  }

  async search(text: string, { sessionId, limit = defaultLimit, cursor }: SearchOptions): Promise<SearchPage> {
    const terms = searchTerms(text);
    let beforeNo = placeOf(cursor);
    const behindCount = await this.#handle.read("search the store", (tx) => readIndexState(tx).behindCount);
    if (terms.length === 0 || limit <= 0) return { hits: [] };
    if (behindCount > worthIndexing) await this.#whereItMay(() => this.#catchUp());
    const hits: Hit[] = [];
    let usesIndex = true;
    while (beforeNo > 0 && hits.length <= limit) {
      const ask = { terms, sessionId, beforeNo, wantedCount: limit + 1 - hits.length, usesIndex };
      const piece = await this.#read(ask);
      if (piece === "broken") {
        usesIndex = false;
        await this.#whereItMay(() => this.#setAside());
        continue;
      }
      hits.push(...piece.hits);
      beforeNo = piece.beforeNo;
      await this.#breath();
    }
    const page = hits.slice(0, limit).map(({ entryNo: _entryNo, ...hit }): SearchHit => hit);
    const last = hits[limit - 1];
    return hits.length > limit && last ? { hits: page, nextCursor: `${last.entryNo}` } : { hits: page };
  }

  /** A broken index is told by an error, so that its transaction is undone: to commit it SQLite would read it again. */
  async #read(ask: Ask): Promise<Piece | "broken"> {
    try {
      return await this.#handle.read("search the store", (tx) => readPiece(tx, ask));
    } catch (error) {
      if (error instanceof SearchIndexBroken) return "broken";
      throw error;
    }
  }

  /** Takes everything in. Rejects as any write does. */
  async fill(): Promise<void> {
    while ((await this.#takeIn("ordinary")) === "more") await this.#breath();
  }

  async #catchUp(): Promise<void> {
    try {
      for (let count = 0; count < catchUpPieces && (await this.#takeIn("derived")) === "more"; count++)
        await this.#breath();
    } catch (error) {
      if (!(error instanceof SearchIndexBroken)) throw error;
      await this.#setAside();
    }
  }

  /** A search that may not write, or not now, finds everything all the same: it reads what is not in the index. */
  async #whereItMay(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (!CodedError.is<StoreErrorCode>(error)) throw error;
    }
  }

  #takeIn(kind: "derived" | "ordinary"): Promise<"more" | "done"> {
    return this.#handle.write(kind, "take entries into the search index", takeInPiece);
  }

  async #setAside(): Promise<void> {
    await this.#handle.write("derived", "set the broken search index aside", markBroken);
  }

  #breath(): Promise<void> {
    return new Promise((resolve) => void this.#host.timers.soon(resolve));
  }
}
