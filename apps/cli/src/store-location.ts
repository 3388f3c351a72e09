import { createHash } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { cliError, systemCodeOf } from "./cli-error.ts";
import { absolutePath } from "./places.ts";
import type { Places } from "./places.ts";

/** Which store a command works on, and who said so. */
export interface StoreLocation {
  /** The store's file. Of a store on a server: what this host's own files for it are named after; no file bears the name. */
  readonly path: string;
  readonly source: "--store" | "config.yaml" | "default";
  /** Where it is on a server: its URL, password and all. */
  readonly url?: string;
  /** How people name it, and type it: no password is in it. */
  readonly shown: string;
}

/** A store on a server has no file; its sockets and its spool are in the home, under a name made from what it is. */
function onServer(url: string, home: string): Pick<StoreLocation, "path" | "url" | "shown"> {
  const shown = withoutSecrets(url);
  const name = createHash("sha256").update(shown).digest("hex").slice(0, 12);
  return { path: path.join(home, `server-${name}`), url, shown };
}

/** The URL as messages may show it. */
export function withoutSecrets(text: string): string {
  if (!URL.canParse(text)) return `${text.slice(0, text.indexOf("://"))}://…`;
  const url = new URL(text);
  const kept = new URLSearchParams();
  for (const name of ["host", "schema"]) {
    const value = url.searchParams.get(name);
    if (value !== null) kept.set(name, value);
  }
  url.password = "";
  url.search = kept.toString();
  return url.href;
}

function pathOf(text: string, places: Places, from?: string): string {
  const [, scheme] = /^([A-Za-z][A-Za-z0-9+.-]+):/.exec(text) ?? [];
  if (scheme === undefined) {
    const [, word] = /^([A-Za-z][A-Za-z0-9+.-]*)\/\/[^/]*@/.exec(text) ?? [];
    if (word === undefined) return absolutePath(places, text, from);
    // As a path it would be made, and named in every message with the password that is in it.
    throw cliError(
      "USAGE",
      `Cannot use the store ${JSON.stringify(`${word}//…`)}: it looks like a URL without its colon. Write ${word}://…, or ./ before a path of that form.`,
    );
  }
  if (scheme.toLowerCase() === "file") {
    try {
      return fileURLToPath(text);
    } catch (error) {
      throw cliError(
        "USAGE",
        `Cannot use the store ${JSON.stringify(text)}: it is no file: URL of this machine.`,
        error,
      );
    }
  }
  throw cliError(
    "USAGE",
    `Cannot use the store ${JSON.stringify(`${scheme}:…`)}: give the path of a file, or a postgres:// URL.`,
  );
}

/** `--store` from the folder the user stands in, then `store.url` from the home, then `state.db` there. */
export function locateStore(
  places: Places,
  from: { readonly flag?: string | undefined; readonly configured: string; readonly home: string },
): StoreLocation {
  const { flag, configured, home } = from;
  if (flag === "") throw cliError("USAGE", "--store needs a path, got an empty value.");
  if (flag !== undefined) return { ...placeOf(flag, places, home), source: "--store" };
  if (configured !== "") return { ...placeOf(configured, places, home, home), source: "config.yaml" };
  const file = path.join(home, "state.db");
  return { path: file, shown: file, source: "default" };
}

function placeOf(
  text: string,
  places: Places,
  home: string,
  from?: string,
): Pick<StoreLocation, "path" | "url" | "shown"> {
  if (/^postgres(ql)?:\/\//i.test(text)) return onServer(text, home);
  const file = pathOf(text, places, from);
  return { path: file, shown: file };
}

/**
 * Where the liveness sockets of a store's processes stand: beside its file, so that whoever sees the one sees the
 * other. The name is short: a socket's path has 107 bytes.
 */
export function socketFolderOf(storePath: string): string {
  return path.join(path.dirname(storePath), "run");
}

/** Whether there is a store. Looks without opening: a closed descriptor would cancel SQLite's locks. */
export async function storeExists(storePath: string): Promise<boolean> {
  try {
    return (await stat(storePath)).size >= 0;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return false;
    // Whatever else is wrong with the path, opening it says so.
    return true;
  }
}

/** Whether anything is in the file; an empty one is as good as none. */
export async function isFilled(file: string): Promise<boolean> {
  const stats = await stat(file).catch(() => undefined);
  return stats !== undefined && stats.isFile() && stats.size > 0;
}

/** The folders into which a process saved a store that was deleted or replaced under it, the newest last. */
export async function rescuedFolders(
  storePath: string,
): Promise<readonly { readonly folder: string; readonly atMs: number }[]> {
  const folders = (await namesBeside(storePath, /^-rescued(-\d+)?$/)).map(async (folder) => ({
    folder,
    atMs: (await stat(folder)).mtimeMs,
  }));
  return (await Promise.all(folders)).toSorted((left, right) => left.atMs - right.atMs);
}

async function namesBeside(storePath: string, suffix: RegExp): Promise<readonly string[]> {
  const { dir, base } = path.parse(storePath);
  const names = await readdir(dir).catch(() => []);
  return names
    .filter((name) => name.startsWith(base) && suffix.test(name.slice(base.length)))
    .toSorted()
    .map((name) => path.join(dir, name));
}

/**
 * What lies beside the path of a store whose file is missing or empty, and what only a store leaves: rows in its log,
 * steps that it refused, or a copy that was saved or laid aside. Nothing where there is a store, or never was one.
 */
export async function remainsOfStore(storePath: string): Promise<readonly string[]> {
  const [wal, beside] = [
    `${storePath}-wal`,
    await namesBeside(storePath, /^-(spool|(rescued|replaced|damaged)(-\d+)?)$/),
  ];
  const remains = (await isFilled(wal)) ? [wal, ...beside] : beside;
  // The file last: whoever makes a store now makes its file before anything else.
  return (await isFilled(storePath)) ? [] : remains;
}

export function remainsText(remains: readonly string[]): string {
  return `the file is missing or empty, and what is left of it lies beside it: ${remains.join(", ")}`;
}
