/**
 * Looks for a pattern in the text files below a folder, in the order of their names. Runs in a worker thread, where it
 * may block: it follows no link, opens nothing but regular files, and none that is forbidden.
 */

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, readdirSync } from "node:fs";
import type { Dirent, Stats } from "node:fs";
import path from "node:path";
import { forbiddenPlaces } from "./forbidden-path.ts";
import type { ForbiddenPlaces } from "./forbidden-path.ts";
import { IgnoreRules, globFilter } from "./ignore-rules.ts";

export interface SearchRequest {
  /** Real paths: where paths are told from, and the folder or file to look in. */
  readonly workspace: string;
  readonly start: string;
  readonly forbiddenPaths: readonly string[];
  /** The source of a regular expression; it is looked for in each line. */
  readonly pattern: string;
  readonly ignoreCase: boolean;
  readonly glob?: string | undefined;
  readonly matchesMax: number;
}

export interface SearchMatch {
  /** Relative to the workspace, with `/`. */
  readonly path: string;
  readonly line: number;
  /** The line, or the part of it around the match. */
  readonly text: string;
}

export interface SearchCounts {
  readonly searchedCount: number;
  /** Binary files, too large ones, and what cannot be read. */
  readonly skippedCount: number;
}

export type SearchMessage =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "matches"; readonly matches: readonly SearchMatch[] }
  | { readonly kind: "end"; readonly counts: SearchCounts; readonly limited: boolean };

// Sources are smaller; larger text is a log or data, and a line of it is found with the shell.
const fileBytesMax = 4_194_304;
const sniffedBytes = 8_000;
const shownCharactersMax = 300;
const shownBeforeMatch = 100;

interface Search {
  readonly request: SearchRequest;
  readonly expression: RegExp;
  readonly forbidden: ForbiddenPlaces;
  readonly wanted: (relative: string) => boolean;
  readonly post: (message: SearchMessage) => void;
  readonly counts: { searchedCount: number; skippedCount: number };
  matchCount: number;
}

export async function searchFiles(request: SearchRequest, post: (message: SearchMessage) => void): Promise<void> {
  const search: Search = {
    request,
    expression: new RegExp(request.pattern, request.ignoreCase ? "i" : ""),
    forbidden: await forbiddenPlaces(request.forbiddenPaths),
    wanted: globFilter(request.glob),
    post,
    counts: { searchedCount: 0, skippedCount: 0 },
    matchCount: 0,
  };
  const { workspace, start } = request;
  if (lstatSync(start).isDirectory()) await searchFolder(search, start, IgnoreRules.at(workspace, start));
  else await searchFile(search, start);
  post({ kind: "end", counts: search.counts, limited: isFull(search) });
}

function isFull({ matchCount, request }: Search): boolean {
  return matchCount >= request.matchesMax;
}

async function searchFolder(search: Search, folder: string, rules: IgnoreRules): Promise<void> {
  for (const entry of entriesOf(search, folder)) {
    if (isFull(search)) return;
    const real = path.join(folder, entry.name);
    if (!entry.isDirectory() && !entry.isFile()) continue;
    if (rules.leavesOut(real, entry.isDirectory())) continue;
    if (entry.isDirectory()) await searchFolder(search, real, rules.below(real));
    else if (search.wanted(relativeOf(search.request.start, real))) await searchFile(search, real);
  }
}

function entriesOf(search: Search, folder: string): readonly Dirent[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.toSorted((left, right) => (left.name < right.name ? -1 : 1));
  } catch {
    search.counts.skippedCount += 1;
    return [];
  }
}

async function searchFile(search: Search, real: string): Promise<void> {
  const { request, post, counts } = search;
  const shown = relativeOf(request.workspace, real);
  const text = await textOf(search, real);
  if (text === undefined) {
    counts.skippedCount += 1;
    return;
  }
  // Told before it is searched: where a pattern runs wild, this is the file.
  post({ kind: "file", path: shown });
  counts.searchedCount += 1;
  const matches: SearchMatch[] = [];
  let line = 0;
  for (let start = 0; start <= text.length && !isFull(search);) {
    const found = text.indexOf("\n", start);
    const end = found === -1 ? text.length : found;
    const content = text.slice(start, text[end - 1] === "\r" && end > start ? end - 1 : end);
    line += 1;
    start = end + 1;
    // What follows the last line end is no line.
    if (found === -1 && content === "") break;
    const match = search.expression.exec(content);
    if (match === null) continue;
    search.matchCount += 1;
    matches.push({ path: shown, line, text: around(content, match.index) });
  }
  if (matches.length > 0) post({ kind: "matches", matches });
}

/** The text of a file, or nothing where it is not for us. */
async function textOf({ forbidden }: Search, real: string): Promise<string | undefined> {
  let stats: Stats;
  try {
    stats = lstatSync(real);
  } catch {
    return undefined;
  }
  if (!stats.isFile() || stats.size > fileBytesMax || (await forbidden.cover(real, stats))) return undefined;
  let handle: number;
  try {
    handle = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    return undefined;
  }
  try {
    const opened = fstatSync(handle);
    if (opened.dev !== stats.dev || opened.ino !== stats.ino) return undefined;
    const bytes = Buffer.alloc(Number(stats.size));
    let length = 0;
    for (let count = -1; count !== 0 && length < bytes.length; length += count) {
      count = readSync(handle, bytes, length, bytes.length - length, null);
    }
    if (bytes.subarray(0, Math.min(length, sniffedBytes)).includes(0)) return undefined;
    return bytes.toString("utf8", 0, length).replaceAll("\0", "\uFFFD");
  } catch {
    return undefined;
  } finally {
    closeSync(handle);
  }
}

function around(line: string, index: number): string {
  if (line.length <= shownCharactersMax) return line;
  const start = Math.max(0, Math.min(index - shownBeforeMatch, line.length - shownCharactersMax));
  const end = start + shownCharactersMax;
  return `${start > 0 ? "..." : ""}${line.slice(start, end)}${end < line.length ? "..." : ""}`;
}

function relativeOf(folder: string, real: string): string {
  const relative = path.relative(folder, real);
  return relative === "" ? path.basename(real) : relative.split(path.sep).join("/");
}
