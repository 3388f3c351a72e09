/**
 * The spool of the store that is read: a copy of it is laid beside the store that is made, whose next grants bring it
 * back. The source keeps its own, as it keeps everything.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { messageOf } from "@turnkeeper/kernel";
import type { Random } from "@turnkeeper/kernel";
import type { SpooledStep } from "@turnkeeper/state-store";
import { SpoolFolder } from "../spool-folder.ts";
import type { SpoolFile } from "../spool-folder.ts";
import { stepOf } from "../spool-line.ts";
import { codeOf } from "../store-failure.ts";
import type { Findings } from "./findings.ts";
import { existsError } from "./partial-output.ts";

export class BroughtSpool {
  readonly #files: readonly SpoolFile[];

  /** Reads all of it. A spool that cannot be read ends no recovery: it is said, and stays where it is. */
  constructor(source: string, random: Pick<Random, "id">, findings: Findings) {
    const folder = new SpoolFolder(source, random);
    let files: readonly SpoolFile[] = [];
    try {
      if (folder.exists) files = folder.files();
    } catch (error) {
      findings.notes.push(`The spool is not brought: ${messageOf(error)}`);
    }
    this.#files = files;
  }

  /** What can be read of it, in the order in which it was kept. */
  *steps(): Generator<SpooledStep> {
    for (const { lines } of this.#files)
      for (const line of lines) {
        const step = stepOf(line);
        if (step) yield step;
      }
  }

  /** Lays the copy beside the store at `path`, on the disk when it returns. */
  layBeside(path: string): void {
    if (this.#files.length === 0) return;
    const folder = `${path}-spool`;
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      throw codeOf(error) === "EEXIST" ? existsError(folder) : error;
    }
    for (const file of this.#files) {
      const descriptor = openSync(join(folder, basename(file.path)), "wx", 0o600);
      try {
        const bytes = Buffer.from(file.lines.map((line) => `${line}\n`).join(""));
        for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at);
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
    }
  }
}
