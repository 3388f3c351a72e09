import { closeSync } from "node:fs";
import { isatty } from "node:tty";

const standardFiles = [0, 1, 2] as const;

/**
 * The terminals that a program began on. Node sets their modes back as the process ends, and aborts with a core dump
 * where one is gone by then (nodejs/node#51519, in Node 20 and 22); a file that is closed it leaves alone.
 */
export class StandardTerminals {
  readonly #files: readonly number[] = standardFiles.filter((file) => isatty(file));

  /** Lets go of those that are gone. The last act of a process: nothing is written to them from here on. */
  letGo(): void {
    for (const file of this.#files) if (!isatty(file)) closeSync(file);
  }
}
