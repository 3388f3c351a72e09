/**
 * What an error of SQLite or of the file system means to a caller: one code, one explanation, the next step. No
 * `SqliteError` leaves this package, and no message sends anybody to a raw SQLite shell on a live file.
 */
import { CodedError } from "@turnkeeper/kernel";
import type { StoreErrorCode } from "@turnkeeper/state-store";
import type { Rescue } from "./rescue.ts";

export type StoreError = CodedError<StoreErrorCode>;

/**
 * How far a call had come. An error on `commit` leaves open whether the write happened; `acknowledge` is the check
 * after a commit that succeeded.
 */
export type Phase = "open" | "read" | "begin" | "body" | "commit" | "acknowledge";

export interface FailedCall {
  /** Says what was attempted: "append to session s1"; while opening, "open". */
  readonly attempt: string;
  readonly path: string;
  readonly phase: Phase;
}

function failure({ attempt, path, phase }: FailedCall): string {
  return `Could not ${attempt} ${phase === "open" ? "" : "in "}the store ${path}`;
}

export function storeError(
  code: StoreErrorCode,
  message: string,
  context: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): StoreError {
  return new CodedError(code, message, cause === undefined ? { context } : { context, cause });
}

/** SQLite's result code name of an error, or the errno name of one from the file system. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/** What became of a store's files, or of this process's locks on them, while it had them open. */
export type FileFinding = "replaced" | "deleted" | "truncated" | "damaged" | "unlocked";

/** The files at the store's path are not those that were opened, or not as SQLite left them. */
export class FilesChanged extends Error {
  readonly finding: FileFinding;
  readonly rescue: Rescue | undefined;

  constructor(finding: FileFinding, rescue?: Rescue) {
    super(finding);
    this.finding = finding;
    this.rescue = rescue;
  }
}

/** The lock is somebody else's for now: the one failure that is retried, and never told as it is. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(codeOf(error));
}

export function isIoError(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_IOERR");
}

/**
 * After these the handle may never write again (STORE-1): structural damage, a file that moved away, and a failed
 * sync, after which a later one can succeed without having brought the lost pages to the disk. Damage that SQLite finds
 * in a virtual table is not structural: the only one is the search index, which is derived.
 */
export function isFinal(error: unknown): boolean {
  return (
    error instanceof FilesChanged ||
    /^SQLITE_(CORRUPT(?!_VTAB)|NOTADB|READONLY_DBMOVED|IOERR_(FSYNC|DIR_FSYNC))/.test(codeOf(error))
  );
}

interface Meaning {
  readonly pattern: RegExp;
  readonly code: StoreErrorCode;
  readonly what: string;
  readonly next: string;
}

const meanings: readonly Meaning[] = [
  {
    pattern: /^SQLITE_READONLY_DBMOVED/,
    code: "STORE_REPLACED",
    what: "the file was moved or replaced while it was open",
    next: "Restart the process to work on the file that is there now.",
  },
  {
    pattern: /^SQLITE_(CORRUPT|NOTADB)/,
    code: "STORE_CORRUPT",
    what: "the file is damaged, or is no database",
    next: "Stop every process that uses it, keep the file and its -wal as they are, and recover into a new file.",
  },
  {
    pattern: /^EROFS/,
    code: "STORE_READONLY",
    what: "its file system is read-only",
    next: "Mount it to be written to, or choose another path.",
  },
  {
    pattern: /^(SQLITE_READONLY|EACCES|EPERM)/,
    code: "STORE_READONLY",
    what: "this process may not write the file or its folder",
    next: "Give its user write permission on both, or choose another path.",
  },
  {
    // A WAL that cannot grow its shared memory is told as an I/O error, though the disk is merely full.
    pattern: /^(SQLITE_FULL|SQLITE_IOERR_SHMSIZE|ENOSPC|EDQUOT)/,
    code: "STORE_FULL",
    what: "the disk is full",
    next: "Free some space and repeat.",
  },
  {
    pattern: /^EFBIG/,
    code: "STORE_FULL",
    what: "no file of this process may grow further",
    next: "Raise its limit (ulimit -f) and repeat.",
  },
  {
    pattern: /^E[MN]FILE$/,
    code: "STORE_UNAVAILABLE",
    what: "this process may open no more files",
    next: "Raise its limit (ulimit -n) and repeat.",
  },
  {
    pattern: /^SQLITE_(IOERR|NOMEM)|^EIO/,
    code: "STORE_IO",
    what: "the operating system reported an I/O error",
    next: "Check the disk and the system log, then repeat.",
  },
  {
    pattern: /^SQLITE_CONSTRAINT|^SQLITE_(TOOBIG|MISMATCH|RANGE)/,
    code: "STORE_CONTRACT",
    what: "the rows it asked for contradict those that are stored",
    next: "This is a fault of the calling program.",
  },
  {
    pattern: /^SQLITE_|^E[A-Z0-9]+$/,
    code: "STORE_UNAVAILABLE",
    what: "the file cannot be opened or reached",
    next: "Check that the path is right and that this user may use the folder.",
  },
];

const outcomes: Readonly<Record<Phase, string>> = {
  open: "",
  read: "",
  begin: " Nothing was written.",
  body: " Nothing was written.",
  commit: " Whether it was written is unknown: read back, or repeat the call, which is harmless.",
  acknowledge: " It was written, but perhaps not to the file that is at this path now.",
};

/** Whether it is a failure of the store at all: a refusal and a fault of a caller say nothing about the file. */
export function isFailure(error: unknown): boolean {
  return error instanceof FilesChanged || (!CodedError.is(error) && /^(SQLITE_|E[A-Z0-9]+$)/.test(codeOf(error)));
}

/** Whether SQLite undid a transaction that failed so: before its commit always, and a full disk undoes a commit. */
export function isUndone(error: unknown, phase: Phase): boolean {
  return phase === "body" || (phase === "commit" && codeOf(error) === "SQLITE_FULL");
}

function isIndeterminate(phase: Phase): boolean {
  return phase === "commit" || phase === "acknowledge";
}

/**
 * Tells an error as a `CodedError`; a coded error passes unchanged, and so does anything that neither SQLite nor the
 * file system raised, which is a fault of this package.
 */
export function explain(error: unknown, call: FailedCall): unknown {
  if (CodedError.is(error)) return error;
  if (error instanceof FilesChanged) return changedError(error.finding, call, error.rescue);
  const code = codeOf(error);
  const meaning = meanings.find(({ pattern }) => pattern.test(code));
  if (!meaning) return error;
  // A full disk makes SQLite roll back, a commit included.
  const phase = meaning.code === "STORE_FULL" && call.phase === "commit" ? "body" : call.phase;
  return storeError(
    meaning.code,
    `${failure(call)}: ${meaning.what} (${code}).${outcomes[phase]} ${meaning.next}`,
    { path: call.path, systemCode: code, isIndeterminate: isIndeterminate(phase) },
    error,
  );
}

export function busyError(call: Omit<FailedCall, "phase">, waitedMs: number): StoreError {
  return storeError(
    "STORE_BUSY",
    `${failure({ ...call, phase: "begin" })}: it is healthy but busy, another process kept its lock for ${Math.round(waitedMs)} ms. Nothing was written; try again.`,
    { path: call.path, waitedMs },
  );
}

const findings: Readonly<Record<FileFinding, Omit<Meaning, "pattern">>> = {
  replaced: {
    code: "STORE_REPLACED",
    what: "its files are not those that were opened; another file was moved or copied over them",
    next: "Restart the process to work on the file that is there now.",
  },
  deleted: {
    code: "STORE_DELETED",
    what: "its file, -wal or -shm was deleted, or moved away, while it was open",
    next: "Stop every process that uses it, bring back what was deleted, and start again.",
  },
  truncated: {
    code: "STORE_TRUNCATED",
    what: "its file, -wal or -shm was cut short while it was open",
    next: "Stop every process that uses it, keep the files as they are, and recover into a new file.",
  },
  damaged: {
    code: "STORE_CORRUPT",
    what: "its first page is damaged, or something that is no database was written over it",
    next: "Stop every process that uses it, keep the file and its -wal as they are, and recover into a new file.",
  },
  unlocked: {
    code: "STORE_UNLOCKED",
    what: "its locks are gone, because something in this process opened and closed one of its files",
    next: "Restart the process, and find what reads the file: only SQLite may open it here.",
  },
};

/** Tells what became of the files. It is final: see STORE-1. */
export function changedError(finding: FileFinding, call: FailedCall, rescue?: Rescue): StoreError {
  const { code, what, next } = findings[finding];
  const saved =
    rescue === undefined
      ? next
      : rescue.kind === "log"
        ? "Its -wal was put back from this process, which still had it open: start again, and all that was acknowledged is there."
        : `All that was acknowledged is in ${rescue.path}, saved from this process, which still had it open.`;
  return storeError(
    code,
    `${failure(call)}: ${what}.${outcomes[call.phase]} This process writes to it no more. ${saved}`,
    {
      path: call.path,
      finding,
      ...(rescue?.kind === "folder" ? { rescued: rescue.path } : {}),
      isIndeterminate: isIndeterminate(call.phase),
    },
  );
}

/** Another database was moved over that of a log: nothing was opened, and so nothing replayed. */
export function foreignLogError(path: string): StoreError {
  return storeError(
    "STORE_REPLACED",
    `Could not open the store ${path}: the file was replaced, but ${path}-wal still belongs to the old one, and SQLite would replay it onto the new one. Nothing was touched. Stop every process that uses it, and move ${path}-wal and ${path}-shm away; if the two do belong together, remove ${path}-mark instead.`,
    { path, finding: "replaced" },
  );
}

/** What every call gets that comes after the error which sealed the store: the same code, and why. */
export function sealedError(call: FailedCall, seal: StoreError): StoreError {
  return storeError(
    seal.code,
    `${failure(call)}: it is sealed, and nothing was written. ${seal.message}`,
    { path: call.path, isIndeterminate: false },
    seal,
  );
}

export function closedError(path: string): StoreError {
  return storeError("STORE_CLOSED", `This handle of the store ${path} is closed; open the store again to use it.`, {
    path,
  });
}
