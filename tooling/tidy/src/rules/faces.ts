import ts from "typescript";
import { lineOf } from "../module-references.ts";
import type { Finding, Rule } from "../rule.ts";
import { isRelative, projectsOf, shippedProjects, splitSpecifier } from "../workspace.ts";

function hasModifier(node: ts.Node, kind: ts.SyntaxKind): boolean {
  return ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some((modifier) => modifier.kind === kind);
}

/** A face lists names; whoever reads it sees the whole package and nothing else happens there. */
export const facesAreLists: Rule = {
  title: "an index.ts holds only named re-exports of its own package",
  check(repository) {
    const findings: Finding[] = [];
    for (const { sources } of shippedProjects(repository)) {
      for (const file of sources.filter((one) => one.endsWith("/index.ts"))) {
        for (const statement of repository.source(file).statements) {
          const isList =
            ts.isExportDeclaration(statement) &&
            statement.exportClause !== undefined &&
            ts.isNamedExports(statement.exportClause) &&
            statement.exportClause.elements.length > 0 &&
            statement.moduleSpecifier !== undefined &&
            ts.isStringLiteral(statement.moduleSpecifier) &&
            isRelative(statement.moduleSpecifier.text);
          if (!isList)
            findings.push({
              file,
              line: lineOf(statement),
              problem: "a face holds something other than a named re-export",
              instead: 'write `export { name } from "./concept.ts"` and keep logic in the concept\'s own file',
            });
        }
      }
    }
    return findings;
  },
};

/** One import style: names that can be searched for. */
export const namedExports: Rule = {
  title: "source has named exports only: no default export, no star",
  check(repository) {
    const findings: Finding[] = [];
    for (const { sources } of projectsOf(repository)) {
      for (const file of sources) {
        for (const statement of repository.source(file).statements) {
          const isDefault = ts.isExportAssignment(statement) || hasModifier(statement, ts.SyntaxKind.DefaultKeyword);
          if (isDefault)
            findings.push({ file, line: lineOf(statement), problem: "a default export", instead: "export it by name" });
          if (!ts.isExportDeclaration(statement)) continue;
          if (statement.exportClause === undefined || ts.isNamespaceExport(statement.exportClause)) {
            findings.push({ file, line: lineOf(statement), problem: "a star export", instead: "list the names" });
          } else if (statement.exportClause.elements.some(({ name }) => name.text === "default")) {
            findings.push({ file, line: lineOf(statement), problem: "a default export", instead: "export it by name" });
          }
        }
      }
    }
    return findings;
  },
};

function importedNames(source: ts.SourceFile, siblings: ReadonlySet<string>): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const statement of source.statements) {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) continue;
    const { packageName } = splitSpecifier(statement.moduleSpecifier.text);
    if (!siblings.has(packageName)) continue;
    const bindings = statement.importClause?.namedBindings;
    if (bindings && ts.isNamedImports(bindings))
      for (const { name } of bindings.elements) names.set(name.text, packageName);
    else if (bindings) names.set(bindings.name.text, packageName);
  }
  return names;
}

/** The sibling's name that a statement hands on, if it does: a re-export, an exported import, a bare alias. */
function handedOn(
  statement: ts.Statement,
  siblings: ReadonlySet<string>,
  imported: ReadonlyMap<string, string>,
): { readonly name: string; readonly owner: string } | undefined {
  if (ts.isExportDeclaration(statement)) {
    if (statement.moduleSpecifier && ts.isStringLiteral(statement.moduleSpecifier)) {
      const { packageName } = splitSpecifier(statement.moduleSpecifier.text);
      if (!siblings.has(packageName)) return undefined;
      const clause = statement.exportClause;
      const name =
        clause && ts.isNamedExports(clause) ? clause.elements.map((one) => one.name.text).join(", ") : "everything";
      return { name, owner: packageName };
    }
    if (!statement.exportClause || !ts.isNamedExports(statement.exportClause)) return undefined;
    for (const { name, propertyName } of statement.exportClause.elements) {
      const local = (propertyName ?? name).text;
      const owner = imported.get(local);
      if (owner !== undefined) return { name: local, owner };
    }
    return undefined;
  }
  // `export type Lease = LeaseView` is a second name for somebody else's thing.
  if (
    ts.isTypeAliasDeclaration(statement) &&
    hasModifier(statement, ts.SyntaxKind.ExportKeyword) &&
    ts.isTypeReferenceNode(statement.type)
  ) {
    const { typeName, typeArguments } = statement.type;
    const owner = ts.isIdentifier(typeName) && typeArguments === undefined ? imported.get(typeName.text) : undefined;
    if (owner !== undefined && ts.isIdentifier(typeName)) return { name: typeName.text, owner };
  }
  return undefined;
}

/** Callers import from the owner: a name has one home, one documentation and one version. */
export const noBorrowedNames: Rule = {
  title: "no package re-exports a sibling's name",
  check(repository) {
    const siblings = new Set(projectsOf(repository).map(({ manifest }) => manifest.name ?? ""));
    const findings: Finding[] = [];
    for (const { sources, manifest } of shippedProjects(repository)) {
      for (const file of sources) {
        const source = repository.source(file);
        const imported = importedNames(source, siblings);
        for (const statement of source.statements) {
          const borrowed = handedOn(statement, siblings, imported);
          if (!borrowed || borrowed.owner === manifest.name) continue;
          findings.push({
            file,
            line: lineOf(statement),
            problem: `hands on ${borrowed.name} of ${borrowed.owner}`,
            instead: `let callers import it from ${borrowed.owner}`,
          });
        }
      }
    }
    return findings;
  },
};
