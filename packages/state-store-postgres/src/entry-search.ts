import { searchTerms, snippetOf, entryText } from "@turnkeeper/state-store";
import type { SearchHit, SearchOptions, SearchPage } from "@turnkeeper/state-store";
import { entryOf } from "./entry-rows.ts";
import type { EntryRow } from "./entry-rows.ts";
import type { Server } from "./server.ts";
import { storeError } from "./store-failure.ts";

const defaultLimit = 100;

/** So many entries one statement looks through at most: some tens of milliseconds without an index. */
const pieceCount = 20_000;

interface Hit extends SearchHit {
  readonly entryNo: number;
}

interface Piece {
  readonly hits: readonly (EntryRow & { readonly entry_no: number; readonly session_id: string })[] | null;
  /** The lowest number that was looked at; null where there was nothing left. */
  readonly through_no: number | null;
}

function placeOf(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  if (/^[1-9]\d{0,14}$/.test(cursor)) return Number(cursor);
  throw storeError("STORE_CONTRACT", `Not a cursor of this search: ${JSON.stringify(cursor)}.`);
}

/** A pattern that finds the term as it stands: no character of it means anything. */
function patternOf(term: string): string {
  return `%${term.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}

/** The next piece below a place: what has every term, newest first, and how far it looked. */
async function readPiece(
  server: Server,
  terms: readonly string[],
  sessionId: string | undefined,
  beforeNo: number,
  wantedCount: number,
): Promise<Piece> {
  const { schema } = server;
  const [row] = await server.read<{ readonly piece: Piece }>(
    "search the store",
    `WITH looked AS MATERIALIZED (
       SELECT entry_no FROM ${schema}.entry
       WHERE entry_no < $2 AND ($3::text IS NULL
         OR session_no = (SELECT session_no FROM ${schema}.session WHERE session_id = $3))
       ORDER BY entry_no DESC LIMIT ${pieceCount}
     ), hits AS (
       SELECT entry.*, session_id FROM looked JOIN ${schema}.entry USING (entry_no) JOIN ${schema}.session USING (session_no)
       WHERE folded LIKE ALL ($1::text[]) ORDER BY entry_no DESC LIMIT $4
     )
     SELECT json_build_object(
       'hits', (SELECT json_agg(json_build_object('entry_no', entry_no, 'session_id', session_id, 'seq', seq, 'key', key,
         'turn_id', turn_id, 'body', body, 'digest', digest, 'at_ms', at_ms, 'archived', archived, 'late', late)
         ORDER BY entry_no DESC) FROM hits),
       'through_no', (SELECT min(entry_no) FROM looked)
     ) AS piece`,
    [terms.map(patternOf), beforeNo, sessionId ?? null, wantedCount],
  );
  return row?.piece ?? { hits: null, through_no: null };
}

function hitsOf({ hits }: Piece, terms: readonly string[]): Hit[] {
  return (hits ?? []).flatMap((row) => {
    const entry = entryOf(row);
    const snippet = snippetOf(entryText(entry.body), terms);
    return snippet === undefined ? [] : [{ sessionId: row.session_id, entry, snippet, entryNo: row.entry_no }];
  });
}

/** Searches from the newest entry down, in pieces, so that no statement of it is long. */
export async function searchEntries(
  server: Server,
  text: string,
  { sessionId, limit = defaultLimit, cursor }: SearchOptions,
): Promise<SearchPage> {
  const terms = searchTerms(text);
  let beforeNo = placeOf(cursor);
  if (terms.length === 0 || limit <= 0) {
    // A store that cannot be reached, or is closed, says so whatever is asked.
    await server.read("search the store", "SELECT 1", []);
    return { hits: [] };
  }
  const found: Hit[] = [];
  while (found.length <= limit) {
    const wantedCount = limit + 1 - found.length;
    const piece = await readPiece(server, terms, sessionId, beforeNo, wantedCount);
    found.push(...hitsOf(piece, terms));
    if (piece.through_no === null) break;
    beforeNo = piece.through_no;
  }
  const page = found.slice(0, limit).map(({ entryNo: _entryNo, ...hit }): SearchHit => hit);
  const last = found[limit - 1];
  return found.length > limit && last ? { hits: page, nextCursor: `${last.entryNo}` } : { hits: page };
}
