import { readlink, realpath } from "node:fs/promises";
import path from "node:path";
import { toolError } from "./errors.ts";
import { quoted, systemCodeOf } from "./file-error.ts";

/**
 * Follows the links of what exists of an absolute path; the rest is appended as it stands. Rejects with `PATH_REFUSED`
 * for a link that leads nowhere: writing through it would create whatever it names, wherever that is.
 */
export async function realPlace(absolute: string): Promise<string> {
  try {
    return await realpath(absolute);
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT" || path.dirname(absolute) === absolute) throw error;
    const target = await readlink(absolute).catch(() => undefined);
    if (target !== undefined) {
      throw toolError("PATH_REFUSED", `${quoted(absolute)} is a link to ${quoted(target)}, which does not exist.`);
    }
    return path.join(await realPlace(path.dirname(absolute)), path.basename(absolute));
  }
}
