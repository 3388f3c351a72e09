import { statfs } from "node:fs/promises";

// Types of file system (linux/magic.h) whose files only one running kernel can reach. A list of the shared ones could
// never be complete; what is not listed here is treated as shared.
const localTypes: ReadonlySet<number> = new Set([
  0xef53, // ext2, ext3, ext4
  0x5846_5342, // xfs
  0x9123_683e, // btrfs
  0xf2f5_2010, // f2fs
  0x2fc1_2fc1, // zfs
  0xca45_1a4e, // bcachefs
  0x0102_1994, // tmpfs
  0x8584_58f6, // ramfs
  0x794c_7630, // overlayfs
]);

/** Whether the files of a folder belong to this kernel alone. Unknown is no. */
export async function isLocalFolder(folder: string): Promise<boolean> {
  try {
    return localTypes.has((await statfs(folder)).type);
  } catch {
    return false;
  }
}
