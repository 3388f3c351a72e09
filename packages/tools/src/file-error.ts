import type { CodedError } from "@turnkeeper/kernel";
import { toolError } from "./errors.ts";
import type { ToolErrorCode } from "./errors.ts";

/** The `code` of a system error (ENOENT, EACCES, …), or undefined for any other error. */
export function systemCodeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

const shownCharactersMax = 200;

/** A path as it may stand in a message: quoted, on one line, of bounded length. */
export function quoted(shownPath: string): string {
  return JSON.stringify(
    shownPath.length <= shownCharactersMax ? shownPath : `${shownPath.slice(0, shownCharactersMax)}...`,
  );
}

/** Tells a failed file operation in one line; an error of this package passes through unchanged. */
export function fileError(error: unknown, attempt: string, shownPath: string): CodedError<ToolErrorCode> {
  const code = systemCodeOf(error);
  const reason = code === undefined ? String(error) : reasonOf(code);
  return toolError("FILE_UNUSABLE", `Could not ${attempt} ${quoted(shownPath)}: ${reason}.`, error);
}

function reasonOf(code: string): string {
  switch (code) {
    case "ENOENT":
      return "it does not exist";
    case "EACCES":
    case "EPERM":
      return "permission denied";
    case "ENOTDIR":
      return "a part of the path is a file, not a folder";
    case "EISDIR":
      return "it is a folder";
    case "ELOOP":
      return "its links lead in a circle";
    case "ENAMETOOLONG":
      return "the name is too long";
    case "ENOSPC":
    case "EDQUOT":
      return "the disk is full";
    case "EROFS":
      return "the file system is read-only";
    case "EMFILE":
    case "ENFILE":
      return "too many files are open";
    default:
      return code;
  }
}
