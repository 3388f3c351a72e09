import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A small file system, in memory. */
export class SmallDisk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Absent where this process may not mount. */
  static mount(parent: string, size = "1m"): SmallDisk | undefined {
    const folder = join(parent, "disk");
    mkdirSync(folder);
    const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder]);
    return status === 0 ? new SmallDisk(folder) : undefined;
  }

  /** Takes so many bytes away; all that is left unless it is told. */
  fill(count?: number): void {
    const { bavail, bsize } = statfsSync(this.folder);
    writeFileSync(join(this.folder, "ballast"), Buffer.alloc(count ?? bavail * bsize));
  }

  empty(): void {
    rmSync(join(this.folder, "ballast"));
  }

  /** Throws when a file is still open for writing. */
  remount(mode: "ro" | "rw"): void {
    const { status, stderr } = spawnSync("mount", ["-o", `remount,${mode}`, this.folder], { encoding: "utf8" });
    if (status !== 0) throw new Error(`mount ended with ${status}: ${stderr}`);
  }

  unmount(): void {
    spawnSync("umount", ["-l", this.folder]);
  }
}
