/** Paths that no file tool may touch: the store's files and the settings beside them. */

import type { Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { realPlace } from "./real-place.ts";

/** Whether a forbidden path may be written so: absolute; a star only as the end of a name. */
export function isForbiddenPattern(pattern: string): boolean {
  return path.isAbsolute(pattern) && /^[^*]*[^*/\\]\*?$/.test(pattern);
}

/** Where forbidden paths lead now; for many questions in a row. */
export interface ForbiddenPlaces {
  /** Whether the real path is, or lies below, a forbidden one, or is another name (hard link) of a forbidden file. */
  cover(real: string, stats: Stats | undefined): Promise<boolean>;
}

export async function forbiddenPlaces(patterns: readonly string[]): Promise<ForbiddenPlaces> {
  const places: { readonly place: string; readonly open: boolean }[] = [];
  for (const pattern of patterns) {
    const open = pattern.endsWith("*");
    for (const place of await placesOf(pattern.replace(/\*$/, ""))) places.push({ place, open });
  }
  return {
    async cover(real, stats) {
      for (const { place, open } of places) {
        if (open ? real.startsWith(place) : real === place || real.startsWith(place + path.sep)) return true;
        if (stats !== undefined && stats.isFile() && stats.nlink > 1 && (await isSameFile(stats, place, open)))
          return true;
      }
      return false;
    },
  };
}

/** Where the path itself stands and, if it is a link, where it leads. */
async function placesOf(absolute: string): Promise<readonly string[]> {
  const folder = await follow(path.dirname(absolute));
  return [...new Set([path.join(folder, path.basename(absolute)), await follow(absolute)])];
}

async function isSameFile(stats: Stats, place: string, open: boolean): Promise<boolean> {
  const folder = path.dirname(place);
  const names = open ? await readdir(folder).catch(() => []) : [path.basename(place)];
  for (const name of names) {
    if (!name.startsWith(path.basename(place))) continue;
    const other = await stat(path.join(folder, name)).catch(() => undefined);
    if (other?.dev === stats.dev && other.ino === stats.ino) return true;
  }
  return false;
}

/** A path that cannot be followed (no permission, a broken link) still counts as it is written. */
function follow(absolute: string): Promise<string> {
  return realPlace(absolute).catch(() => absolute);
}
