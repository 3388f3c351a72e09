import { stat, statfs } from "node:fs/promises";
import path from "node:path";
import type { Host } from "@turnkeeper/kernel";
import type { SpoolView } from "@turnkeeper/state-store";
import { failureLine } from "../cli-error.ts";
import { spoolLines } from "../display/transcript-text.ts";
import { socketFolderOf, storeExists } from "../store-location.ts";
import type { StoreLocation } from "../store-location.ts";
import { note, ok, wrong } from "./check.ts";
import type { Check } from "./check.ts";

/** What Linux calls some file systems (linux/magic.h), and whether a WAL's shared memory works across all who see them. */
const fileSystems: ReadonlyMap<number, { readonly name: string; readonly isLocal: boolean }> = new Map([
  [0xef53, { name: "ext4", isLocal: true }],
  [0x5846_5342, { name: "xfs", isLocal: true }],
  [0x9123_683e, { name: "btrfs", isLocal: true }],
  [0xf2f5_2010, { name: "f2fs", isLocal: true }],
  [0x2fc1_2fc1, { name: "zfs", isLocal: true }],
  [0xca45_1a4e, { name: "bcachefs", isLocal: true }],
  [0x0102_1994, { name: "tmpfs", isLocal: true }],
  [0x794c_7630, { name: "overlayfs", isLocal: true }],
  [0x6969, { name: "NFS", isLocal: false }],
  [0xff53_4d42, { name: "CIFS", isLocal: false }],
  [0xfe53_4d42, { name: "SMB", isLocal: false }],
  [0x0102_1997, { name: "9p", isLocal: false }],
  [0x6573_5546, { name: "FUSE or virtiofs", isLocal: false }],
  [0x5346_414f, { name: "AFS", isLocal: false }],
  [0x00c3_6400, { name: "Ceph", isLocal: false }],
]);

/** A socket's path may have 107 bytes; the file's name in its folder has 32 with the slash. */
const socketFolderBytesMax = 75;

async function fileSystemCheck(folder: string): Promise<Check> {
  const name = "file system";
  let type: number;
  try {
    ({ type } = await statfs(folder));
  } catch {
    return note(name, "this platform does not tell; SQLite needs a local disk");
  }
  const known = fileSystems.get(type);
  if (!known) return note(name, `of type 0x${type.toString(16)}, which is not known here; SQLite needs a local disk`);
  if (known.isLocal) return ok(name, known.name);
  return wrong(
    name,
    `${known.name}: shared file systems lose SQLite's locks`,
    "put the store on a local disk: store.url, or --store",
  );
}

function socketCheck(storePath: string): Check {
  const folder = socketFolderOf(storePath);
  const byteCount = Buffer.byteLength(folder);
  if (byteCount <= socketFolderBytesMax) return ok("liveness socket", folder);
  const found = `${folder} has ${byteCount} bytes, more than the ${socketFolderBytesMax} that leave room for a socket; a dead holder is then found by pid and start time`;
  return note("liveness socket", found, "put the store in a folder with a shorter path");
}

async function modeChecks(storePath: string): Promise<readonly Check[]> {
  const files = await Promise.all(
    [storePath, `${storePath}-wal`, `${storePath}-shm`].map(async (file) => ({
      file,
      mode: (await stat(file).catch(() => undefined))?.mode,
    })),
  );
  const open = files.filter(({ mode }) => mode !== undefined && (mode & 0o077) !== 0);
  if (open.length === 0) return [ok("store files", "readable by this user alone")];
  return open.map(({ file, mode = 0 }) =>
    wrong("store files", `${file} has mode ${(mode & 0o777).toString(8)}`, `chmod 600 ${file}`),
  );
}

/** What the store refused waits beside it, for as long as nobody runs a turn on those sessions. */
function spoolCheck(waiting: readonly SpoolView[]): readonly Check[] {
  if (waiting.length === 0) return [ok("spool", "empty")];
  const next = "turnkeeper run --session ID brings back what waits of a session; what is damaged stays in its file";
  return spoolLines(waiting).map((line) => note("spool", line, next));
}

/** The same where the store cannot be opened: only that there is something, and where. */
async function spoolBesideCheck(storePath: string): Promise<readonly Check[]> {
  const folder = `${storePath}-spool`;
  const isThere = await stat(folder).catch(() => undefined);
  if (!isThere) return [];
  const found = `what turns had produced when the store failed is in ${folder}`;
  return [note("spool", found, "keep the folder beside the store's file: it comes back once the store works again")];
}

/** Looks at the store, opening it where there is one. */
export async function storeChecks(
  location: StoreLocation,
  deps: { readonly host: Host; readonly journalMode: "wal" | "delete" },
): Promise<readonly Check[]> {
  const { path: storePath, source } = location;
  if (!(await storeExists(storePath))) {
    return [
      note("store", `none at ${storePath} (${source}) yet`, "the first turnkeeper run makes it"),
      socketCheck(storePath),
    ];
  }
  const { openSqliteStore } = await import("@turnkeeper/state-store-sqlite");
  // The modes as they are now: opening closes the files to others.
  const modes = await modeChecks(storePath);
  const around = [await fileSystemCheck(path.dirname(storePath)), socketCheck(storePath), ...modes];
  try {
    const store = await openSqliteStore(storePath, { host: deps.host }, { journalMode: deps.journalMode });
    try {
      const { journalMode, sqliteVersion, schemaVersion, notes } = store.file;
      const running = await store.turns.running();
      return [
        ok("store", `${storePath} (${source}), schema ${schemaVersion}, ${running.length} running turns`),
        ok("sqlite", sqliteVersion),
        journalMode === "wal"
          ? ok("journal", "WAL")
          : note("journal", `${journalMode}: readers and writers wait for each other`),
        ...notes.map((text) => note("store", text)),
        ...spoolCheck(await store.spool.waiting()),
        ...around,
      ];
    } finally {
      await store.close();
    }
  } catch (error) {
    return [
      wrong("store", failureLine(error), "see the message; the store was left as it is"),
      ...(await spoolBesideCheck(storePath)),
      ...around,
    ];
  }
}
