/**
 * The index that a search filters by: derived, filled behind the entries by searches and repairs, and never touched
 * by an append. Whatever is wrong with it, no write fails and the store is not sealed: it is marked broken, durably,
 * and searches read the entries themselves until `rebuildSearchIndex` has made it anew.
 *
 * | state | event | next |
 * | --- | --- | --- |
 * | behind | a search finds many entries that are not in it | a piece nearer, one short transaction at a time |
 * | behind, current | an error of the index's own tables | broken |
 * | current | entries are stored | behind |
 * | broken | anything but a rebuild | broken; nothing reads or fills it |
 */
import { CodedError } from "@turnkeeper/kernel";
import { entryText, foldText } from "@turnkeeper/state-store";
import type { EntryBody } from "@turnkeeper/state-store";
import { parseJson } from "./json-column.ts";
import { gramsOf, probeQuery, sessionQuery } from "./search-grams.ts";
import { codeOf } from "./store-failure.ts";
import type { Transaction } from "./transaction.ts";

/** As the migration makes it; a test compares them. */
const createIndex = `CREATE VIRTUAL TABLE entry_gram USING fts5 (
  grams,
  content = '',
  contentless_delete = 1,
  detail = none,
  tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\\]^_\`{|}~'"
)`;

const ownTables = ["config", "data", "docsize", "idx"].map((name) => `entry_gram_${name}`);

/** How much one transaction takes into the index: about 3 ms, for which other writers wait; a merge takes longer. */
const pieceLength = 16 * 1024;
const pieceCount = 128;
const gonePieceCount = 512;

/** The index cannot be used. The transaction that found out is undone, and this says so without ending the store. */
export class SearchIndexBroken extends Error {
  constructor(cause: unknown) {
    super("The search index is broken.", { cause });
  }
}

export interface IndexState {
  /** Entries up to here are found by the index; 0 while it is broken. */
  readonly throughNo: number;
  readonly isBroken: boolean;
  /** No fewer than there are entries to take in. */
  readonly behindCount: number;
}

export function readIndexState(tx: Transaction): IndexState {
  const row = tx.rows.get<{ through_no: number; is_broken: number; newest_no: number }>(
    `SELECT through_entry_no AS through_no, is_broken, coalesce((SELECT max(entry_no) FROM entry), 0) AS newest_no
     FROM search_index`,
  );
  if (!row || row.is_broken === 1) return { throughNo: 0, isBroken: true, behindCount: 0 };
  return { throughNo: row.through_no, isBroken: false, behindCount: row.newest_no - row.through_no };
}

/**
 * What is wrong with the index by what is kept of it; nothing where its counts fit. Throws `SearchIndexBroken` where it
 * cannot be read.
 */
export function indexFault(tx: Transaction): string | undefined {
  const row = tx.rows.get<{ through_no: number; is_broken: number }>(
    "SELECT through_entry_no AS through_no, is_broken FROM search_index",
  );
  if (!row) return "the search index has lost its own row";
  if (row.is_broken === 1) return "the search index is broken; searches read the entries themselves";
  const counts = (): { readonly entries: number; readonly indexed: number; readonly gone: number } | undefined =>
    tx.rows.get(
      `SELECT (SELECT count(*) FROM entry WHERE entry_no <= ?) AS entries,
         (SELECT count(*) FROM entry_gram_docsize) AS indexed, (SELECT count(*) FROM search_gone) AS gone`,
      row.through_no,
    );
  const { entries = 0, indexed = 0, gone = 0 } = onIndex(tx, counts) ?? {};
  // What was deleted is forgotten by and by, and counted until then.
  if (indexed === entries || (gone > 0 && indexed > entries)) return undefined;
  return `the search index has ${indexed} entries, and there are ${entries} up to entry number ${row.through_no}, which it should have`;
}

/** Whether SQLite finds damage in a table, as it did in something that it did not name. */
function isDamaged(tx: Transaction, table: string): boolean {
  try {
    return tx.rows
      .all<{ quick_check: string }>(`PRAGMA quick_check('${table}')`)
      .some((row) => row.quick_check !== "ok");
  } catch (error) {
    if (codeOf(error) === "SQLITE_CORRUPT") return true;
    throw error;
  }
}

export interface SampledPiece {
  /** An entry that the index does not find by its own text. */
  readonly hiddenNo?: number;
  /** Where the next piece begins; absent behind the last. */
  readonly afterNo?: number;
}

/** So many entries are looked for in the index, spread over all that it should have: some seconds of a large store. */
const sampledMax = 4_096;
const sampledPieceCount = 64;

/**
 * Looks for entries in the index by groups of their own text, those behind `afterNo`: each entry of a small store, and of
 * a large one as many, spread evenly. What the index has too much costs a look and no more, since it only filters.
 */
export function sampleIndex(tx: Transaction, afterNo: number): SampledPiece {
  const { throughNo } = readIndexState(tx);
  const stride = Math.max(1, Math.floor(throughNo / sampledMax));
  const gone = tx.rows.get("SELECT 1 FROM search_gone LIMIT 1");
  // Numbers of what was deleted may have come round again: the index is not right before it has forgotten them.
  if (gone) return {};
  let lastNo = afterNo;
  for (let count = 0; count < sampledPieceCount; count++) {
    const row = tx.rows.get<EntrySource>(
      "SELECT entry_no, session_no, body FROM entry WHERE entry_no > ? AND entry_no <= ? ORDER BY entry_no LIMIT 1",
      lastNo,
      throughNo,
    );
    if (!row) return {};
    const query = probeQuery(gramsOf(row.session_no, foldText(bodyText(row.body))));
    const found = onIndex(tx, () =>
      tx.rows.get(
        "SELECT 1 FROM entry_gram WHERE entry_gram MATCH ? AND rowid = CAST(? AS INTEGER)",
        query,
        row.entry_no,
      ),
    );
    if (!found) return { hiddenNo: row.entry_no };
    lastNo = row.entry_no + stride - 1;
  }
  return { afterNo: lastNo };
}

/**
 * Damaged pages and missing tables of the index are told as damage of the whole file, which they are not. All of the index
 * is read to know it, once: a broken one is not asked again.
 */
function isOfIndex(tx: Transaction, error: unknown): boolean {
  const code = codeOf(error);
  if (code !== "SQLITE_CORRUPT") return /^SQLITE_(CORRUPT_VTAB|ERROR|CONSTRAINT)/.test(code);
  const found = tx.rows.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'entry_gram_*'",
  );
  const names = new Set(found.map(({ name }) => name));
  return !ownTables.every((name) => names.has(name)) || ownTables.some((name) => isDamaged(tx, name));
}

/** Runs statements on the index; an error of its own tables is told as `SearchIndexBroken`. */
function onIndex<T>(tx: Transaction, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (isOfIndex(tx, error)) throw new SearchIndexBroken(error);
    throw error;
  }
}

/**
 * The numbers of entries before `beforeNo` that the query finds, the last stored first. A number is bound as a REAL, which
 * FTS5 takes for no bound at all: it would begin with the last stored for every page.
 */
export function findCandidates(tx: Transaction, query: string, beforeNo: number, limit: number): readonly number[] {
  return onIndex(tx, () =>
    tx.rows
      .all<{ entry_no: number }>(
        `SELECT rowid AS entry_no FROM entry_gram WHERE entry_gram MATCH ? AND rowid < CAST(? AS INTEGER)
         ORDER BY rowid DESC LIMIT ?`,
        query,
        beforeNo,
        limit,
      )
      .map(({ entry_no }) => entry_no),
  );
}

interface EntrySource {
  readonly entry_no: number;
  readonly session_no: number;
  readonly body: string;
}

/** Takes the next entries in, what was deleted out first, so that a number that came round again is not mistaken. */
export function takeInPiece(tx: Transaction): "more" | "done" {
  const state = readIndexState(tx);
  if (state.isBroken) return "done";
  if (forgetPiece(tx) === "more") return "more";
  const rows: EntrySource[] = [];
  let length = 0;
  for (const row of tx.rows.iterate<EntrySource>(
    "SELECT entry_no, session_no, body FROM entry WHERE entry_no > ? ORDER BY entry_no LIMIT ?",
    state.throughNo,
    pieceCount,
  )) {
    rows.push(row);
    length += row.body.length;
    if (length >= pieceLength) break;
  }
  const last = rows.at(-1);
  if (!last) return "done";
  onIndex(tx, () => {
    for (const { entry_no, session_no, body } of rows)
      tx.rows.run(
        "INSERT INTO entry_gram (rowid, grams) VALUES (?, ?)",
        entry_no,
        gramsOf(session_no, foldText(bodyText(body))),
      );
    // Else the index would be written with the commit, whose failure nobody could take for its own.
    tx.rows.run("SAVEPOINT taken_in");
    tx.rows.run("RELEASE taken_in");
  });
  tx.rows.run("UPDATE search_index SET through_entry_no = ?", last.entry_no);
  return "more";
}

/** A body that rotted has no text to find; verification names it. */
export function bodyText(body: string): string {
  try {
    return entryText(parseJson<EntryBody>(body, "entry.body"));
  } catch (error) {
    if (CodedError.is(error, "STORE_CORRUPT")) return "";
    throw error;
  }
}

function forgetPiece(tx: Transaction): "more" | "done" {
  const gone = tx.rows.get<{ gone_no: number; session_no: number }>(
    "SELECT gone_no, session_no FROM search_gone ORDER BY gone_no LIMIT 1",
  );
  if (!gone) return "done";
  const entryNos = findCandidates(tx, sessionQuery(gone.session_no), Number.MAX_SAFE_INTEGER, gonePieceCount);
  onIndex(tx, () => {
    for (const entryNo of entryNos) tx.rows.run("DELETE FROM entry_gram WHERE rowid = ?", entryNo);
    tx.rows.run("SAVEPOINT forgotten");
    tx.rows.run("RELEASE forgotten");
  });
  if (entryNos.length < gonePieceCount) tx.rows.run("DELETE FROM search_gone WHERE gone_no = ?", gone.gone_no);
  return "more";
}

/** A session was deleted, and its numbers with it: the next entries may get them again, and must be taken in. */
export function forgetSession(tx: Transaction, sessionNo: number): void {
  const { isBroken } = readIndexState(tx);
  if (isBroken) return;
  tx.rows.run("INSERT INTO search_gone (session_no) VALUES (?)", sessionNo);
  tx.rows.run(
    "UPDATE search_index SET through_entry_no = min(through_entry_no, coalesce((SELECT max(entry_no) FROM entry), 0))",
  );
}

export function markBroken(tx: Transaction): void {
  tx.rows.run("UPDATE search_index SET is_broken = 1, through_entry_no = 0");
}

function dropIndex(tx: Transaction): void {
  onIndex(tx, () => tx.rows.execute("DROP TABLE IF EXISTS entry_gram"));
}

/** Pages that are damaged cannot be freed: the index keeps them, under a name that nobody asks for. */
function renameIndex(tx: Transaction): void {
  const taken = tx.rows.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'entry_gram_broken_*[0-9]'",
  );
  onIndex(tx, () => tx.rows.execute(`ALTER TABLE entry_gram RENAME TO entry_gram_broken_${taken.length + 1}`));
}

/** An empty index in place of whatever there is. Throws `SearchIndexBroken` where that cannot be removed so. */
export function resetIndex(tx: Transaction, how: "drop" | "rename"): void {
  if (how === "drop") dropIndex(tx);
  else renameIndex(tx);
  tx.rows.execute(createIndex);
  tx.rows.run("DELETE FROM search_gone");
  tx.rows.run(
    `INSERT INTO search_index (index_no, through_entry_no, is_broken) VALUES (1, 0, 0)
     ON CONFLICT (index_no) DO UPDATE SET through_entry_no = 0, is_broken = 0`,
  );
}
