/** The file that keeps one provider's tokens, in OAuth's own words, so that an endpoint's answer can be put there as it is. */
import { open, readFile, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import type { Host } from "@turnkeeper/kernel";
import { choiceError } from "./errors.ts";

export interface StoredTokens {
  readonly access_token: string;
  readonly refresh_token?: string;
  /** Unix time in seconds. Absent: nobody knows, and a 401 tells. */
  readonly expires_at?: number;
  /** When a refresh began whose answer is not stored, ISO 8601; its process may have died between the two. */
  readonly refresh_began_at?: string;
  /** What else the provider said (scope, id_token) is kept as it is. */
  readonly [name: string]: unknown;
}

const othersMask = 0o077;

export const unusableFile = (file: string, what: string, advice: string): Error =>
  choiceError("MODEL_CREDENTIAL_INVALID", `Cannot use the token file ${file}: ${what}. ${advice}`);

/** The errno name of an error of the file system. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : String(error);

async function textOf(file: string): Promise<string> {
  try {
    const [text, { mode }] = await Promise.all([readFile(file, "utf8"), stat(file)]);
    if (process.platform === "win32" || (mode & othersMask) === 0) return text;
    const readable = `other users may read it (mode ${(mode & 0o777).toString(8)})`;
    throw unusableFile(file, readable, "Take that away with chmod 600, and log in again if they may have.");
  } catch (error) {
    if (codeOf(error) === "ENOENT") throw unusableFile(file, "it is not there", "Log in, and put the tokens there.");
    if (codeOf(error).startsWith("MODEL_")) throw error;
    throw unusableFile(file, `it cannot be read (${codeOf(error)})`, "Let this user read it.");
  }
}

const isOptional = (value: unknown, type: "string" | "number"): boolean => value === undefined || typeof value === type;

function tokensOf(text: string): StoredTokens | undefined {
  try {
    const value = JSON.parse(text) as StoredTokens | null;
    if (typeof value !== "object" || value === null) return undefined;
    const { access_token, refresh_token, expires_at, refresh_began_at } = value;
    const isSound =
      typeof access_token === "string" &&
      isSendable(access_token) &&
      isOptional(refresh_token, "string") &&
      isOptional(expires_at, "number") &&
      isOptional(refresh_began_at, "string");
    return isSound ? value : undefined;
  } catch {
    // Not quoted: whatever it is, a token may be in it.
    return undefined;
  }
}

/** Whether a header can carry it. */
export const isSendable = (token: string): boolean => /^[\x21-\x7e]+$/.test(token);

/** Rejects with `MODEL_CREDENTIAL_INVALID` where the file is missing, no such file, or open to others. */
export async function readTokens(file: string): Promise<StoredTokens> {
  const tokens = tokensOf(await textOf(file));
  if (tokens) return tokens;
  throw unusableFile(file, "it holds no JSON object with an access_token that a header can carry", "Log in again.");
}

/** Replaces the file as one step, mode 0600 and on the disk, so that a reader or a crash meets the old or the new one. */
export async function writeTokens(file: string, tokens: StoredTokens, { random }: Host): Promise<void> {
  const draft = `${file}.${random.id()}.tmp`;
  try {
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(`${JSON.stringify(tokens, undefined, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    // The first failure is the one to tell; a draft that was never made cannot be removed.
    await rm(draft, { force: true }).catch(() => undefined);
    throw unusableFile(
      file,
      `it cannot be written (${codeOf(error)})`,
      "Let this user write there, or free some space.",
    );
  }
  await syncFolder(path.dirname(file));
}

async function syncFolder(folder: string): Promise<void> {
  // Windows opens no folder for it, and NTFS keeps names in a journal of its own.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
