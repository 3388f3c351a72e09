import { z } from "zod";
import { isForbiddenPattern } from "./forbidden-path.ts";
import { resolveOptions } from "./options.ts";

export interface FileToolsOptions {
  /**
   * Absolute paths that are refused with everything below them; one that ends in `*` covers every name that begins so
   * (`state.db*` covers `state.db-wal`). The files of a store that this process has open must be here. Default none.
   */
  readonly forbiddenPaths?: readonly string[];
  /** The most that one `read_file` answers, in bytes. Default 65,536: some 16,000 tokens. */
  readonly readBytesMax?: number;
  /** The most lines that one `read_file` answers, and its default. Default 2,000. */
  readonly readLinesMax?: number;
  /** The most entries that one `list_files` answers. Default 1,000. */
  readonly listEntriesMax?: number;
  /** The most matches that one `search_files` answers, and its default. Default 200. */
  readonly searchMatchesMax?: number;
  /** How long one `search_files` may take. Default 20,000: a repository of 100,000 files, or a pattern gone wild. */
  readonly searchTimeoutMs?: number;
}

export type ResolvedFileToolsOptions = Readonly<Required<FileToolsOptions>>;

const optionsSchema = z.strictObject({
  forbiddenPaths: z
    .array(z.string().refine(isForbiddenPattern, "expected an absolute path, a star only at the end of a name"))
    .readonly()
    .default([]),
  readBytesMax: z.int().min(16).max(16_777_216).default(65_536),
  readLinesMax: z.int().min(1).max(1_000_000).default(2_000),
  listEntriesMax: z.int().min(1).max(100_000).default(1_000),
  searchMatchesMax: z.int().min(1).max(10_000).default(200),
  searchTimeoutMs: z.number().positive().max(600_000).default(20_000),
});

export function resolveFileToolsOptions(owner: string, options?: FileToolsOptions): ResolvedFileToolsOptions {
  return resolveOptions(owner, optionsSchema, options);
}
