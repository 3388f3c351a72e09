/** A store with something of everything, and what of it a recovery owes after some of its pages were destroyed. */
import { closeSync, copyFileSync, existsSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { createHash } from "node:crypto";
import Database from "better-sqlite3";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { EntryDraft, Grant, StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { isBroken, leafCells } from "../src/recovery/leaf-cells.ts";
import { pageHeaderOf } from "../src/recovery/page-header.ts";
import { PageImage, SourceFiles } from "../src/recovery/page-image.ts";
import { recover } from "../src/recovery/recovery.ts";
import type { RecoveryReport } from "../src/recovery/recovery-report.ts";
import { holderOf, runnerOf } from "./scene.ts";

export const pageSize = 4096;

export function sha256(path: string): string {
  return existsSync(path) ? createHash("sha256").update(readFileSync(path)).digest("hex") : "missing";
}

/** The files of a store that nobody has open. */
export function hashes(path: string): string[] {
  return [path, `${path}-wal`, `${path}-journal`].map(sha256);
}

export function copyStore(from: string, to: string): void {
  for (const suffix of ["", "-wal", "-journal"])
    if (existsSync(`${from}${suffix}`)) copyFileSync(`${from}${suffix}`, `${to}${suffix}`);
}

export function overwrite(path: string, offset: number, bytes: Uint8Array): void {
  const file = openSync(path, "r+");
  writeSync(file, bytes, 0, bytes.length, offset);
  closeSync(file);
}

export function truncate(path: string, byteCount: number): void {
  const file = openSync(path, "r+");
  ftruncateSync(file, byteCount);
  closeSync(file);
}

function stepsOf(turnId: string, number: number): EntryDraft[] {
  const callIds = number % 3 === 0 ? ["a", "b"] : ["a"];
  const calls = callIds.map((callId) => ({ type: "tool-call" as const, callId, name: "shell", input: { number } }));
  const results = callIds.map((callId): EntryDraft => {
    // Now and then an output that goes on over other pages.
    const output = `output ${number} ${callId} `.repeat(number % 11 === 0 ? 900 : 12);
    return { key: `${turnId}/${callId}`, body: { role: "tool", callId, name: "shell", status: "ok", output } };
  });
  return [{ key: `${turnId}/calls`, body: { role: "assistant", parts: calls } }, ...results];
}

interface Played {
  readonly store: StateStore;
  readonly sessionId: string;
  readonly number: number;
}

async function begin({
  store,
  sessionId,
  number,
}: Played): Promise<{ readonly grant: Grant; readonly turnId: string }> {
  const turnId = `turn-${number}`;
  const runner = runnerOf(sessionId);
  const text = `question ${number} of ${sessionId}, 日本語 ${"…".repeat(number % 40)}`;
  await store.inbox.offer({ sessionId, inputId: `input-${number}`, text, onBusy: "wait", runner });
  const holder = holderOf(`${sessionId}-${number}`);
  const answer = await store.leases.acquire({
    sessionId,
    holder,
    ttlMs: 60_000,
    begin: { turnId, runnerId: runner.runnerId },
  });
  if (answer.kind !== "granted") throw new Error(`${sessionId} was answered ${answer.kind}.`);
  return { grant: { sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken }, turnId };
}

async function playTurn(played: Played): Promise<void> {
  const { store, number } = played;
  const { grant, turnId } = await begin(played);
  const [calls, ...results] = stepsOf(turnId, number);
  if (calls) await store.transcript.append({ grant, turnId, entries: [calls] });
  await store.transcript.append({ grant, turnId, entries: results });
  if (number % 10 === 9) {
    const { compactionCount, entries } = await store.transcript.load(grant.sessionId);
    const basis = { throughSeq: entries.at(-4)?.seq ?? 1, compactionCount };
    const summary: EntryDraft = { key: `${turnId}/summary`, body: { role: "summary", text: `summary ${number}` } };
    await store.transcript.applyCompaction({ grant, turnId, basis, summary });
  }
  const answer: EntryDraft = {
    key: `${turnId}/answer`,
    body: { role: "assistant", parts: [{ type: "text", text: `answer ${number} `.repeat(20) }] },
  };
  await store.turns.end({ grant, turnId, outcome: "answered", entries: [answer], release: true });
}

/** Plays `turnCount` turns on each of several sessions; one of them ends with a turn that runs and an input that waits. */
export async function fillStore(
  path: string,
  sessionCount: number,
  turnCount: number,
  whileOpen: () => void = () => {},
): Promise<void> {
  const store = await openSqliteStore(path, { host: virtualHost() });
  for (let number = 1; number <= turnCount; number++)
    for (let session = 1; session <= sessionCount; session++)
      await playTurn({ store, sessionId: `session-${session}`, number });
  const last: Played = { store, sessionId: "session-1", number: turnCount + 1 };
  const { grant, turnId } = await begin(last);
  const [calls] = stepsOf(turnId, last.number);
  if (calls) await store.transcript.append({ grant, turnId, entries: [calls] });
  const runner = runnerOf("waiting");
  await store.inbox.offer({ sessionId: "session-1", inputId: "waiting", text: "I wait", onBusy: "queue", runner });
  whileOpen();
  await store.close();
}

type Row = Readonly<Record<string, string | number | null>>;

export interface PlacedRow {
  readonly table: string;
  readonly row: Row;
  readonly pages: readonly number[];
}

function overflowPages(image: PageImage, first: number): number[] {
  const pages: number[] = [];
  for (let page = first; page !== 0; page = image.page(page)?.readUInt32BE(0) ?? 0) pages.push(page);
  return pages;
}

/** Every row that a recovery brings, with all pages it lies on. Fails unless SQLite counts the same rows. */
export function placedRows(path: string): PlacedRow[] {
  const database = new Database(path, { readonly: true });
  const owners = database
    .prepare(
      "SELECT pageno, name FROM dbstat WHERE pagetype = 'leaf' AND name IN ('session', 'lease', 'turn', 'input', 'entry')",
    )
    .all() as { pageno: number; name: string }[];
  const files = new SourceFiles(path);
  const image = new PageImage(files);
  const placed = owners.flatMap(({ pageno, name }) => {
    const page = image.page(pageno);
    const header = page && pageHeaderOf(page, pageno);
    const find = database.prepare(`SELECT * FROM ${name} WHERE rowid = ?`);
    if (!page || !header) throw new Error(`Page ${pageno} of ${name} cannot be read.`);
    return leafCells(page, header, 1e9).map((cell): PlacedRow => {
      if (isBroken(cell)) throw new Error(`A cell of page ${pageno} is broken: ${cell.reason}.`);
      const row = find.get(cell.rowid) as Row;
      return { table: name, row, pages: [pageno, ...overflowPages(image, cell.overflowPage)] };
    });
  });
  const counted = database
    .prepare(
      ["session", "lease", "turn", "input", "entry"]
        .map((name) => `(SELECT count(*) FROM ${name})`)
        .join(" + ")
        .replace(/^/, "SELECT "),
    )
    .pluck()
    .get();
  files.close();
  database.close();
  if (counted !== placed.length)
    throw new Error(`SQLite counts ${String(counted)} rows, and ${placed.length} have a place.`);
  return placed;
}

const owed: Readonly<Record<string, readonly string[]>> = {
  session: ["session_no", "session_id"],
  lease: ["session_id"],
  turn: ["session_no", "turn_id", "holder_id", "started_at_ms"],
  input: ["session_no", "input_id", "text", "digest", "delivery", "turn_id"],
  entry: ["session_no", "key", "turn_id", "body", "digest", "at_ms"],
};

/** The rows that are owed and are not in the recovered store. */
export function missingRows(output: string, rows: readonly PlacedRow[]): PlacedRow[] {
  const database = new Database(output, { readonly: true });
  try {
    return rows.filter(({ table, row }) => {
      const columns = owed[table] ?? [];
      const condition = columns.map((name) => `${name} IS ?`).join(" AND ");
      const found = database
        .prepare(`SELECT * FROM ${table} WHERE ${condition}`)
        .all(...columns.map((name) => row[name])) as Row[];
      const isKept = (other: Row): boolean => {
        if (table === "lease") return (other["fencing_token"] ?? 0) >= (row["fencing_token"] ?? 0);
        if (table === "input") return row["ended_as"] === null || row["ended_as"] === other["ended_as"];
        if (table === "turn") return row["outcome"] === null || row["outcome"] === other["outcome"];
        return true;
      };
      return !found.some(isKept);
    });
  } finally {
    database.close();
  }
}

/** Recovers within this process, which has the source closed; a real one has a process of its own. */
export function recoverHere(source: string, output: string): Promise<RecoveryReport> {
  return recover({ source, output }, { host: virtualHost(), tell: async () => {} });
}
