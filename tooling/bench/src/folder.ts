import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder for the files of one benchmark, on the disk that is measured: `BENCH_FOLDER`, else the temporary folder. */
export interface Folder extends Disposable {
  readonly path: string;
  /** A path that nobody else was given. */
  fresh(name: string): string;
}

export function openFolder(): Folder {
  const path = mkdtempSync(join(process.env["BENCH_FOLDER"] ?? tmpdir(), "tk-bench-"));
  let count = 0;
  return {
    path,
    fresh: (name) => join(path, `${++count}-${name}`),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
