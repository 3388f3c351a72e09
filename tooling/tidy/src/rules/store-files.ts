import ts from "typescript";
import { lineOf, referencesOf, resolveRelative, walk } from "../module-references.ts";
import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";

const fileModules: ReadonlySet<string> = new Set(["fs", "node:fs", "fs/promises", "node:fs/promises"]);

/** Calls that open the file they name. Closing any descriptor of a file drops every POSIX lock the process holds on it. */
const opening =
  /^(open|openSync|openAsBlob|readFile|readFileSync|writeFile|writeFileSync|appendFile|appendFileSync|copyFile|copyFileSync|cp|cpSync|truncate|truncateSync|createReadStream|createWriteStream)$/;

/** Whether an argument can only mean a file that is no part of a store: the kernel's tables, a file of this package. */
function isNoStoreFile(argument: ts.Expression | undefined): boolean {
  if (!argument) return false;
  if (ts.isStringLiteralLike(argument)) return argument.text.startsWith("/proc/");
  if (ts.isTemplateExpression(argument)) return argument.head.text.startsWith("/proc/");
  let isOwn = false;
  walk(argument, (node) => {
    if (ts.isMetaProperty(node)) isOwn = true;
  });
  return isOwn;
}

/** `wx` makes a file that was not there; nobody can hold a lock on it. */
function makesAnew(argument: ts.Expression | undefined): boolean {
  return argument !== undefined && ts.isStringLiteralLike(argument) && /^[wa]x\+?$/.test(argument.text);
}

/** Open files beside the store, under names that they make themselves. */
const beside: readonly string[] = ["log-mark", "spool-folder", "spool-reserve"].map(
  (name) => `packages/state-store-sqlite/src/${name}.ts`,
);

/** The kernel opens nothing but a folder under this flag. */
function opensFolder(argument: ts.Expression | undefined): boolean {
  let isFolder = false;
  if (argument)
    walk(argument, (node) => {
      if (ts.isPropertyAccessExpression(node) && node.name.text === "O_DIRECTORY") isFolder = true;
    });
  return isFolder;
}

/** Keeps its descriptor open for as long as SQLite has the file open, and closes it last. */
const anchor = "packages/state-store-sqlite/src/file-anchor.ts";

/** Reads and syncs files of stores in a process of its own, which has none of them open; the face must not load it. */
const offline = "packages/state-store-sqlite/src/recovery/offline-file.ts";

/** Every module that is loaded with one of the project's own. */
function loadedWith(repository: Repository, sources: readonly string[], first: string): ReadonlySet<string> {
  const loaded = new Set([first]);
  for (const file of loaded) {
    if (!sources.includes(file)) continue;
    for (const { specifier, kind } of referencesOf(repository.source(file)))
      if (kind === "value" && specifier.startsWith(".")) loaded.add(resolveRelative(file, specifier));
  }
  return loaded;
}

/** The one fault that no later check can undo: reading a store's file cancels SQLite's locks on it. */
export const storeFilesAreSqlites: Rule = {
  title: "state-store-sqlite never opens a store's file through fs",
  check(repository) {
    const findings: Finding[] = [];
    const adapter = shippedProjects(repository).find(({ key }) => key === "state-store-sqlite");
    const faceLoads = adapter ? loadedWith(repository, adapter.sources, `${adapter.folder}/src/index.ts`) : new Set();
    for (const file of adapter?.sources ?? []) {
      if (file === anchor || beside.includes(file) || (file === offline && !faceLoads.has(offline))) continue;
      const source = repository.source(file);
      const imported = new Map<string, string>();
      const namespaces = new Set<string>();
      for (const statement of source.statements) {
        if (
          !ts.isImportDeclaration(statement) ||
          !ts.isStringLiteral(statement.moduleSpecifier) ||
          !fileModules.has(statement.moduleSpecifier.text)
        )
          continue;
        const { importClause } = statement;
        if (importClause?.name) namespaces.add(importClause.name.text);
        const bindings = importClause?.namedBindings;
        if (bindings && ts.isNamedImports(bindings))
          for (const { name, propertyName } of bindings.elements) imported.set(name.text, (propertyName ?? name).text);
        else if (bindings) namespaces.add(bindings.name.text);
      }
      walk(source, (node) => {
        if (!ts.isCallExpression(node)) return;
        const { expression } = node;
        const isMember =
          ts.isPropertyAccessExpression(expression) &&
          ts.isIdentifier(expression.expression) &&
          namespaces.has(expression.expression.text);
        const name = isMember
          ? expression.name.text
          : ts.isIdentifier(expression)
            ? imported.get(expression.text)
            : undefined;
        if (name === undefined || !opening.test(name)) return;
        const [first, second] = node.arguments;
        if (isNoStoreFile(first) || (name.startsWith("open") && (makesAnew(second) || opensFolder(second)))) return;
        findings.push({
          file,
          line: lineOf(node),
          problem: `${name}() may open a file of a store, and closing it again would cancel SQLite's locks on it`,
          instead: 'look with stat, make a new file with open(path, "wx"), copy with db.backup() or VACUUM INTO',
        });
      });
    }
    return findings;
  },
};
