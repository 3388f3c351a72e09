import ts from "typescript";
import { lineOf, walk } from "../module-references.ts";
import type { Finding, Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";

/** Where a package may read the environment, and why. */
const environmentReaders: readonly { readonly file: string; readonly reason: string }[] = [
  {
    file: "packages/tools/src/child-environment.ts",
    reason: "builds the environment of a child process from the names it may have",
  },
];

/** Settings arrive as options: a package that reads the environment cannot be embedded twice with two settings. */
export const noEnvironment: Rule = {
  title: "packages do not read process.env; apps do, and hand on what they read",
  check(repository) {
    const findings: Finding[] = [];
    for (const project of shippedProjects(repository).filter(({ kind }) => kind === "packages")) {
      for (const file of project.sources) {
        if (environmentReaders.some((one) => one.file === file)) continue;
        walk(repository.source(file), (node) => {
          const isMember =
            ts.isPropertyAccessExpression(node) &&
            node.name.text === "env" &&
            ts.isIdentifier(node.expression) &&
            node.expression.text === "process";
          const isImport =
            ts.isImportDeclaration(node) &&
            ts.isStringLiteral(node.moduleSpecifier) &&
            /^(node:)?process$/.test(node.moduleSpecifier.text);
          const bindings = isImport ? node.importClause?.namedBindings : undefined;
          const isImported =
            bindings !== undefined &&
            ts.isNamedImports(bindings) &&
            bindings.elements.some((one) => (one.propertyName ?? one.name).text === "env");
          if (isMember || isImported) {
            findings.push({
              file,
              line: lineOf(node),
              problem: "a package reads process.env",
              instead: "take the value as an option; the app reads the environment",
            });
          }
        });
      }
    }
    return findings;
  },
};
