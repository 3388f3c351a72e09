/** What a rule's patterns are held against: the part of a call that says what it does, in one spelling only. */

import { realpathSync } from "node:fs";
import path from "node:path";
import { allowsCommand, meetsCommand, textFits } from "./command-pattern.ts";
import { readCommandLine } from "./command-words.ts";

export interface ApprovalSubject {
  /** Whether a pattern that allows fits: never when it might fit something else than what will happen. */
  allowedBy(pattern: string): boolean;
  /** Whether a pattern that forbids or asks fits: also when it only might. */
  metBy(pattern: string): boolean;
  /** False where not all of what will happen can be read. */
  readonly readable: boolean;
}

const inputField = (input: unknown, name: string): unknown =>
  typeof input === "object" && input !== null ? (input as Readonly<Record<string, unknown>>)[name] : undefined;

/** By the fields of the input: a command, a path or an address; for others, the input as a whole. */
export function approvalSubjectOf(input: unknown, workspace: string): ApprovalSubject {
  const command = inputField(input, "command");
  if (typeof command === "string") return commandSubject(command);
  const url = inputField(input, "url");
  if (typeof url === "string") return urlSubject(url);
  const file = inputField(input, "path");
  if (typeof file === "string") return pathSubject(file, workspace);
  const text = canonicalJson(input);
  return {
    readable: true,
    allowedBy: (pattern) => textFits(pattern, text),
    metBy: (pattern) => textFits(pattern, text),
  };
}

function commandSubject(text: string): ApprovalSubject {
  const line = readCommandLine(text);
  return {
    readable: line.plain,
    allowedBy: (pattern) => allowsCommand(pattern, line),
    metBy: (pattern) => meetsCommand(pattern, line),
  };
}

/** Paths are relative to the workspace, without `.` and `..`; a link counts by its name and by where it leads. */
function pathSubject(shown: string, workspace: string): ApprovalSubject {
  const folder = realPlaceNow(path.resolve(workspace));
  const named = path.relative(path.resolve(workspace), path.resolve(workspace, shown));
  const real = path.relative(folder, realPlaceNow(path.resolve(folder, shown)));
  const spellings = [named, real].map((one) => (one === "" ? "." : one.split(path.sep).join("/")));
  return {
    readable: true,
    allowedBy: (pattern) => spellings.every((spelling) => pathFits(pattern, spelling)),
    metBy: (pattern) => spellings.some((spelling) => pathFits(pattern, spelling)),
  };
}

/** A pattern without a slash is for the name in any folder, as in `.gitignore`; a path outside fits only as `../…`. */
function pathFits(pattern: string, spelling: string): boolean {
  const outside = spelling === ".." || spelling.startsWith("../") || path.isAbsolute(spelling);
  if (outside && !pattern.startsWith("../") && !path.isAbsolute(pattern)) return false;
  if (textFits(pattern.replace(/^\.\//, ""), spelling)) return true;
  return !pattern.includes("/") && textFits(pattern, spelling.slice(spelling.lastIndexOf("/") + 1));
}

/** Where a path leads now; what does not exist stands for itself. */
function realPlaceNow(absolute: string): string {
  try {
    return realpathSync.native(absolute);
  } catch {
    const parent = path.dirname(absolute);
    return parent === absolute ? absolute : path.join(realPlaceNow(parent), path.basename(absolute));
  }
}

/** Patterns name a host, `*.` before it for those below, and perhaps a path: `docs.rs`, `https://*.mdn.dev/en/*`. */
function urlSubject(text: string): ApprovalSubject {
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // No address is fetched under it.
  }
  if (url === undefined) return { readable: false, allowedBy: () => false, metBy: () => false };
  const paths = [...new Set([url.pathname, decoded(url.pathname)])].map((one) => one + url.search);
  return {
    readable: true,
    allowedBy: (pattern) => paths.every((one) => urlFits(pattern, url, one)),
    metBy: (pattern) => paths.some((one) => urlFits(pattern, url, one)),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function urlFits(pattern: string, url: URL, pathAndSearch: string): boolean {
  if (pattern === "*") return true;
  const match = /^(?:(https?):\/\/)?(\*\.)?([^/*]+)(\/.*)?$/i.exec(pattern);
  if (!match) return false;
  const [, scheme, below, host = "", rest] = match;
  if (scheme !== undefined && url.protocol !== `${scheme.toLowerCase()}:`) return false;
  const wanted = host.toLowerCase();
  // A dot at its end makes no other name of it.
  const own = (/:\d+$/.test(wanted) ? url.host : url.hostname).replace(/\.(?=$|:)/, "");
  if (below === undefined ? own !== wanted : !own.endsWith(`.${wanted}`)) return false;
  return rest === undefined || textFits(rest, pathAndSearch);
}

/** One spelling for equal inputs: keys in order, no white space. */
function canonicalJson(value: unknown): string {
  return (
    JSON.stringify(value, (_key, inner: unknown) =>
      typeof inner === "object" && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).toSorted(([left], [right]) => (left < right ? -1 : 1)))
        : inner,
    ) ?? ""
  );
}
