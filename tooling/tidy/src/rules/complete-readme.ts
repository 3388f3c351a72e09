import ts from "typescript";
import { walk } from "../module-references.ts";
import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";

/** Values that a face exports; types explain themselves where they are used. */
export function exportedValues(source: ts.SourceFile): readonly string[] {
  return source.statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || statement.isTypeOnly || !statement.exportClause) return [];
    if (!ts.isNamedExports(statement.exportClause)) return [];
    return statement.exportClause.elements.filter((one) => !one.isTypeOnly).map(({ name }) => name.text);
  });
}

/** The codes of a package: the string members of its types named `…ErrorCode`. */
function errorCodes(repository: Repository, files: readonly string[]): readonly string[] {
  const codes: string[] = [];
  for (const file of files) {
    for (const statement of repository.source(file).statements) {
      if (!ts.isTypeAliasDeclaration(statement) || !statement.name.text.endsWith("ErrorCode")) continue;
      walk(statement.type, (node) => {
        if (ts.isLiteralTypeNode(node) && ts.isStringLiteral(node.literal)) codes.push(node.literal.text);
      });
    }
  }
  return codes;
}

/** What a package offers and what it throws can be read in its README, not only in its types. */
export const completeReadme: Rule = {
  title: "a package's README names every value it exports and every error code it has",
  check(repository) {
    const findings: Finding[] = [];
    for (const { kind, folder, sources } of shippedProjects(repository)) {
      const file = `${folder}/README.md`;
      if (kind !== "packages" || !repository.has(file)) continue;
      const words = new Set(repository.text(file).match(/[A-Za-z_]\w*/g));
      const faces = sources.filter((one) => one.endsWith("/src/index.ts") || one.endsWith("/src/testing/index.ts"));
      for (const name of faces.flatMap((face) => exportedValues(repository.source(face)))) {
        if (!words.has(name))
          findings.push({
            file,
            problem: `does not mention ${name}, which the package exports`,
            instead: "give it a heading under API, or stop exporting it",
          });
      }
      for (const code of errorCodes(repository, sources)) {
        if (!words.has(code))
          findings.push({
            file,
            problem: `does not mention the error code ${code}`,
            instead: "say under Errors when it comes and what to do",
          });
      }
    }
    return findings;
  },
};
