import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";

/** The files of a checkout, or of a made-up tree in a test; paths are relative to the root, with forward slashes. */
export interface Repository {
  /** Every file's path, sorted. */
  readonly paths: readonly string[];
  has(file: string): boolean;
  text(file: string): string;
  /** The parsed module; parsed once, so that twenty rules cost one parse. */
  source(file: string): ts.SourceFile;
}

function repositoryFrom(paths: readonly string[], read: (file: string) => string): Repository {
  const known = new Set(paths);
  const texts = new Map<string, string>();
  const sources = new Map<string, ts.SourceFile>();
  const text = (file: string): string => {
    const cached = texts.get(file);
    if (cached !== undefined) return cached;
    if (!known.has(file)) throw new Error(`There is no ${file} in this tree.`);
    const content = read(file);
    texts.set(file, content);
    return content;
  };
  const source = (file: string): ts.SourceFile => {
    const cached = sources.get(file);
    if (cached) return cached;
    const parsed = ts.createSourceFile(file, text(file), ts.ScriptTarget.ES2022, true);
    sources.set(file, parsed);
    return parsed;
  };
  return { paths: [...known].toSorted(), has: (file) => known.has(file), text, source };
}

/** A made-up tree: path to content. */
export function repositoryOf(files: Readonly<Record<string, string>>): Repository {
  return repositoryFrom(Object.keys(files), (file) => files[file] ?? "");
}

// What .gitignore leaves out, by name: a walk needs no git, so the rules also run in an unpacked source archive.
const ignoredNames: ReadonlySet<string> = new Set([".git", ".turbo", ".tstest", "node_modules", "dist", "coverage"]);
const ignoredEndings: readonly string[] = [".tsbuildinfo", ".log", ".tgz"];

/** The checkout under `root`, without what git ignores. Files are read when a rule first asks for them. */
export function readRepository(root: string): Repository {
  const paths: string[] = [];
  const walk = (folder: string): void => {
    for (const item of readdirSync(path.join(root, folder), { withFileTypes: true })) {
      if (ignoredNames.has(item.name) || ignoredEndings.some((ending) => item.name.endsWith(ending))) continue;
      const relative = folder === "" ? item.name : `${folder}/${item.name}`;
      if (item.isDirectory()) walk(relative);
      else if (item.isFile()) paths.push(relative);
    }
  };
  walk("");
  return repositoryFrom(paths, (file) => readFileSync(path.join(root, file), "utf8"));
}
