/** What a search leaves out: by `.gitignore` files, each for what lies below its folder, and by name. */

import { readFileSync } from "node:fs";
import path from "node:path";
import ignore from "ignore";
import type { Ignore } from "ignore";

// Never what somebody looks for, and often most of what there is.
const skippedFolders: ReadonlySet<string> = new Set([".git", "node_modules"]);
const ignoreFileBytesMax = 1_048_576;

/** The rules that hold in one folder: its own, and those of the folders above it up to the workspace. */
export class IgnoreRules {
  readonly #levels: readonly { readonly folder: string; readonly rules: Ignore }[];

  private constructor(levels: readonly { readonly folder: string; readonly rules: Ignore }[]) {
    this.#levels = levels;
  }

  /** For a folder at or below `workspace`, both real paths. A folder that was left out above and is named is meant. */
  static at(workspace: string, folder: string): IgnoreRules {
    const none = new IgnoreRules([]);
    if (folder === workspace) return none.below(folder);
    const above = IgnoreRules.at(workspace, path.dirname(folder));
    return (above.leavesOut(folder, true) ? none : above).below(folder);
  }

  below(folder: string): IgnoreRules {
    const text = ignoreFileIn(folder);
    if (text === undefined) return this;
    return new IgnoreRules([...this.#levels, { folder, rules: ignore().add(text) }]);
  }

  /** Whether an entry is left out; the rules of the nearest folder that say anything of it decide. */
  leavesOut(real: string, isFolder: boolean): boolean {
    if (isFolder && skippedFolders.has(path.basename(real))) return true;
    for (const { folder, rules } of this.#levels.toReversed()) {
      const relative = path.relative(folder, real).split(path.sep).join("/");
      const { ignored, unignored } = rules.test(isFolder ? `${relative}/` : relative);
      if (ignored || unignored) return ignored;
    }
    return false;
  }
}

/** Whether a path, relative to the search's folder, is meant by a glob: as a line of `.gitignore` would mean it. */
export function globFilter(glob: string | undefined): (relative: string) => boolean {
  if (glob === undefined) return () => true;
  const excludes = glob.startsWith("!");
  const rules = ignore().add(excludes ? glob.slice(1) : glob);
  return (relative) => rules.ignores(relative) !== excludes;
}

function ignoreFileIn(folder: string): string | undefined {
  try {
    const text = readFileSync(path.join(folder, ".gitignore"), "utf8");
    return text.slice(0, ignoreFileBytesMax);
  } catch {
    // None, or none that can be read: nothing is left out by it.
    return undefined;
  }
}
