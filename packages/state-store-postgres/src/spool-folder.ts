/**
 * The files of a spool: one folder of this host, in it one file a step. A step is written under another name and then
 * renamed, so a file that bears a step's name is whole; a replay removes it only after what it says is committed.
 *
 * Keeps SPOOL-1 on the disk. Two who replay one step at once store it once: its entries have keys and digests.
 */
import {
  closeSync,
  constants,
  fdatasyncSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Random } from "@turnkeeper/kernel";
import { digestOf } from "@turnkeeper/state-store";
import type { SpooledStep } from "@turnkeeper/state-store";
import { codeOf, storeError } from "./store-failure.ts";

const folderMode = 0o700;
const fileMode = 0o600;
/** Missing where the platform has no such flag. */
const noFollow = (constants as { readonly O_NOFOLLOW?: number }).O_NOFOLLOW ?? 0;

/** What names a session's files as it is; a tilde stands in no session id. */
const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const stepPattern = /^([^~]+)~(\d+)~[^~]+\.json$/;

/** A file of the spool: its step, or nothing where it cannot be read any more. */
export interface SpoolFile {
  readonly sessionId: string;
  readonly path: string;
  readonly step: SpooledStep | undefined;
}

interface StepName {
  readonly name: string;
  readonly sessionId: string;
  readonly number: number;
}

function withFile<T>(path: string, flags: number, use: (fd: number) => T): T {
  const fd = openSync(path, flags | noFollow, fileMode);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

function stepOf(text: string): SpooledStep | undefined {
  try {
    const { digest, step } = JSON.parse(text) as { readonly digest?: unknown; readonly step?: SpooledStep };
    return step !== undefined && digestOf(step) === digest ? step : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

export class SpoolFolder {
  readonly path: string;
  readonly #random: Pick<Random, "id">;

  constructor(path: string, random: Pick<Random, "id">) {
    this.path = path;
    this.#random = random;
  }

  /** Whether there is a spool at all: one look, for every grant. */
  get exists(): boolean {
    return lstatSync(this.path, { throwIfNoEntry: false }) !== undefined;
  }

  /** Stores a step, and answers its path once it would survive a power cut. */
  keep(step: SpooledStep): string {
    const { sessionId } = step.grant;
    if (!sessionIdPattern.test(sessionId))
      throw storeError("STORE_CONTRACT", `Session id ${JSON.stringify(sessionId)} cannot name a file of the spool.`);
    mkdirSync(this.path, { recursive: true, mode: folderMode });
    if (!lstatSync(this.path).isDirectory())
      throw storeError("STORE_UNAVAILABLE", `The spool ${this.path} is no folder. Move it away and repeat.`);
    const number = 1 + Math.max(0, ...this.#names(sessionId).map((one) => one.number));
    const path = join(this.path, `${sessionId}~${`${number}`.padStart(8, "0")}~${this.#random.id()}.json`);
    const made = `${path}.new`;
    withFile(made, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, (fd) => {
      const bytes = Buffer.from(JSON.stringify({ digest: digestOf(step), step }));
      for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
      fdatasyncSync(fd);
    });
    renameSync(made, path);
    withFile(this.path, constants.O_RDONLY | constants.O_DIRECTORY, fsyncSync);
    return path;
  }

  #names(sessionId?: string): readonly StepName[] {
    if (!this.exists) return [];
    return readdirSync(this.path)
      .flatMap((name) => {
        const [, id, number] = stepPattern.exec(name) ?? [];
        if (id === undefined || id !== (sessionId ?? id)) return [];
        return [{ name, sessionId: id, number: Number(number) }];
      })
      .toSorted((left, right) => left.number - right.number || (left.name < right.name ? -1 : 1));
  }

  /** What waits, of every session or of one, oldest first. */
  files(sessionId?: string): readonly SpoolFile[] {
    return this.#names(sessionId).flatMap(({ name, sessionId: id }) => {
      const path = join(this.path, name);
      const text = this.#unlessGone(() => withFile(path, constants.O_RDONLY, (fd) => readFileSync(fd, "utf8")));
      return text === undefined ? [] : [{ sessionId: id, path, step: stepOf(text) }];
    });
  }

  /** Removes a file whose step is committed. */
  letGo(file: SpoolFile): void {
    this.#unlessGone(() => unlinkSync(file.path));
  }

  #unlessGone<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }
}
