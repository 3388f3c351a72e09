import { statfsSync } from "node:fs";
import { dirname } from "node:path";

/**
 * File systems whose pages may be somebody else's too (https://man7.org/linux/man-pages/man2/statfs.2.html): memory
 * that is shared through them between a host and a guest, or between hosts, is not the same memory, and a WAL index
 * that differs by side corrupts the database.
 */
const sharedFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB"],
  [0xff534d42, "CIFS"],
  [0x01021997, "9p"],
  [0x65735546, "FUSE or virtiofs"],
  [0x00c36400, "Ceph"],
  [0x0bd00bd0, "Lustre"],
  [0x786f4256, "a VirtualBox folder"],
]);

/** Names the file system of the path when another kernel may work on it too; absent for a local one. */
export function sharedFileSystem(
  path: string,
  statfs: (folder: string) => { readonly type: number } = statfsSync,
): string | undefined {
  try {
    return sharedFileSystems.get(statfs(dirname(path)).type >>> 0);
  } catch {
    // A platform that does not tell is treated as local: SQLite's own refusal of a WAL is noticed anyway.
    return undefined;
  }
}
