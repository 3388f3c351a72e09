/** What can be said of a store's files without opening them. */
import { constants } from "node:fs";
import { access, readdir, stat, statfs } from "node:fs/promises";
import { userInfo } from "node:os";
import path from "node:path";
import { systemCodeOf } from "../cli-error.ts";
import { inspectCommand, topCommand } from "../printed-command.ts";
import { shellWord } from "../shell-word.ts";
import { socketFolderOf } from "../store-location.ts";
import { note, ok, wrong } from "./check.ts";
import type { Check } from "./check.ts";

interface FileSystem {
  readonly name: string;
  /** Whether a WAL's shared memory works across all who see it. */
  readonly isLocal: boolean;
  /** Why it is worth knowing all the same. */
  readonly but?: string;
}

/** What Linux calls some file systems (linux/magic.h). */
const fileSystems: ReadonlyMap<number, FileSystem> = new Map([
  [0xef53, { name: "ext4", isLocal: true }],
  [0x5846_5342, { name: "xfs", isLocal: true }],
  [0x9123_683e, { name: "btrfs", isLocal: true }],
  [0xf2f5_2010, { name: "f2fs", isLocal: true }],
  [0x2fc1_2fc1, { name: "zfs", isLocal: true }],
  [0xca45_1a4e, { name: "bcachefs", isLocal: true }],
  [0x0102_1994, { name: "tmpfs", isLocal: true, but: "it is gone when the machine restarts" }],
  [0x794c_7630, { name: "overlayfs", isLocal: true, but: "in a container it is gone with the container" }],
  [0x6969, { name: "NFS", isLocal: false }],
  [0x517b, { name: "SMB", isLocal: false }],
  [0xff53_4d42, { name: "CIFS", isLocal: false }],
  [0xfe53_4d42, { name: "SMB", isLocal: false }],
  [0x0102_1997, { name: "9p", isLocal: false }],
  [0x6573_5546, { name: "FUSE or virtiofs", isLocal: false }],
  [0x5346_414f, { name: "AFS", isLocal: false }],
  [0x00c3_6400, { name: "Ceph", isLocal: false }],
  [0x0bd0_0bd0, { name: "Lustre", isLocal: false }],
  [0x786f_4256, { name: "a VirtualBox folder", isLocal: false }],
]);

/** What keeps no files, though root may write there (linux/magic.h). */
const virtualFileSystems: ReadonlyMap<number, string> = new Map([
  [0x9fa0, "proc"],
  [0x6265_6572, "sysfs"],
  [0x6367_7270, "cgroup2"],
  [0x0027_e0eb, "cgroup"],
  [0x6462_6720, "debugfs"],
  [0x7363_6673, "securityfs"],
  [0x1cd1, "devpts"],
]);

/** The kernel's own file system that the folder is on, where files cannot be kept. */
export async function virtualFileSystem(folder: string): Promise<string | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  return found && virtualFileSystems.get(found.type >>> 0);
}

/** A socket's path may have 107 bytes; the file's name in its folder has 32 with the slash. */
const socketFolderBytesMax = 75;

/** Below this a long turn may not fit: its answers, the WAL up to a checkpoint, and the spool. */
const freeBytesMin = 256 * 1024 * 1024;

/** A WAL is cut back to this by a checkpoint; one that is longer has a reader that does not end, or nobody to cut it. */
const walBytesMax = 64 * 1024 * 1024;

const elsewhere = "put the store on a local disk: store.url, or --store";

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`;

async function sizeOf(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.size;
}

async function fileSystemChecks(folder: string): Promise<readonly Check[]> {
  const name = "file system";
  let found;
  try {
    found = await statfs(folder);
  } catch {
    return [note(name, "this platform does not tell; SQLite needs a local disk")];
  }
  const { type, bsize, bavail } = found;
  const free = bsize * bavail;
  const space =
    free >= freeBytesMin
      ? ok("disk space", `${megabytes(free)} free`)
      : wrong(
          "disk space",
          `${megabytes(free)} free in ${folder}, less than the ${megabytes(freeBytesMin)} that long turns need`,
          { first: "free some space; this shows what takes it", next: `du -xh ${shellWord(folder)} | sort -h | tail` },
        );
  const virtual = virtualFileSystems.get(type >>> 0);
  if (virtual !== undefined)
    return [wrong(name, `${virtual} keeps no files`, "put the store on a disk: store.url, or --store")];
  const known = fileSystems.get(type >>> 0);
  if (!known)
    return [note(name, `of type 0x${type.toString(16)}, which is not known here; SQLite needs a local disk`), space];
  if (!known.isLocal) return [wrong(name, `${known.name}: shared file systems lose SQLite's locks`, elsewhere), space];
  if (known.but !== undefined) return [note(name, `${known.name}: ${known.but}`, elsewhere), space];
  return [ok(name, known.name), space];
}

async function socketCheck(storePath: string): Promise<Check> {
  const name = "liveness socket";
  const folder = socketFolderOf(storePath);
  const byteCount = Buffer.byteLength(folder);
  if (byteCount > socketFolderBytesMax)
    return note(
      name,
      `${folder} has ${byteCount} bytes, more than the ${socketFolderBytesMax} that leave room for a socket; a dead holder is then found by pid and start time`,
      "put the store in a folder with a shorter path",
    );
  const stats = await stat(folder).catch(() => undefined);
  if (!stats) return ok(name, `${folder}, once a process needs it`);
  if (!stats.isDirectory())
    return wrong(
      name,
      `${folder} is no folder; a dead holder is then found by pid and start time`,
      `mv ${shellWord(folder)} ${shellWord(`${folder}.aside`)}`,
    );
  const refused = await access(folder, constants.W_OK | constants.X_OK).then(
    () => undefined,
    (error: unknown) => systemCodeOf(error) ?? String(error),
  );
  if (refused === "EROFS") return wrong(name, `${folder} is on a file system that is read-only`, elsewhere);
  if (refused !== undefined)
    return wrong(name, `${folder} cannot be used by this user (${refused})`, {
      first: "become its owner, or root",
      next: `chown -R ${userInfo().uid} ${shellWord(folder)}`,
    });
  if ((stats.mode & 0o077) !== 0)
    return note(
      name,
      `${folder} can be entered by other users (mode ${(stats.mode & 0o777).toString(8)})`,
      `chmod 700 ${shellWord(folder)}`,
    );
  return ok(name, folder);
}

async function modeChecks(storePath: string): Promise<readonly Check[]> {
  const spool = `${storePath}-spool`;
  const spooled = (await readdir(spool).catch(() => [])).map((name) => path.join(spool, name));
  const files = await Promise.all(
    [storePath, `${storePath}-wal`, `${storePath}-shm`, ...spooled].map(async (file) => ({
      file,
      stats: await stat(file).catch(() => undefined),
    })),
  );
  // A folder in a file's place is told where the store is opened; closing it to others would not make it a store.
  const open = files.flatMap(({ file, stats }) =>
    stats?.isFile() && (stats.mode & 0o077) !== 0 ? [{ file, mode: stats.mode }] : [],
  );
  if (open.length === 0) return [ok("store files", "readable by this user alone")];
  return open.map(({ file, mode }) =>
    wrong("store files", `${file} has mode ${(mode & 0o777).toString(8)}`, `chmod 600 ${shellWord(file)}`),
  );
}

/** What SQLite leaves beside a database, and what it means where it is too long or alone. */
async function logChecks(storePath: string): Promise<readonly Check[]> {
  const wal = `${storePath}-wal`;
  const [byteCount = 0, storeBytes = 0] = await Promise.all([sizeOf(wal), sizeOf(storePath)]);
  if (byteCount > 0 && storeBytes === 0)
    return [
      wrong("wal", `${wal} holds rows, and the file it belongs to is missing or empty`, {
        first: `bring ${storePath} back beside it, or see what it holds`,
        next: inspectCommand(storePath),
      }),
    ];
  if (byteCount <= walBytesMax) return [ok("wal", megabytes(byteCount))];
  return [
    wrong(
      "wal",
      `${wal} has ${megabytes(byteCount)}, more than ${megabytes(walBytesMax)}: a reader does not end, or a process was killed`,
      { first: "end the process that reads for so long; this lists what runs", next: topCommand(storePath) },
    ),
  ];
}

async function linkChecks(storePath: string): Promise<readonly Check[]> {
  const stats = await stat(storePath).catch(() => undefined);
  if (!stats?.isFile() || stats.nlink <= 1) return [];
  const copy = `${storePath}.copy`;
  return [
    wrong(
      "store files",
      `${storePath} has ${stats.nlink} hard links, and each would get a WAL of its own, which loses rows`,
      {
        first: "end every process that uses it",
        next: `cp ${shellWord(storePath)} ${shellWord(copy)} && mv ${shellWord(copy)} ${shellWord(storePath)}`,
      },
    ),
  ];
}

/** Everything around the store's file. The modes as they are now: opening closes the files to others. */
export async function storeFileChecks(storePath: string): Promise<Check[]> {
  const [socket, ...others] = await Promise.all([
    socketCheck(storePath),
    fileSystemChecks(path.dirname(storePath)),
    modeChecks(storePath),
    linkChecks(storePath),
    logChecks(storePath),
  ]);
  return [socket, ...others.flat()];
}
