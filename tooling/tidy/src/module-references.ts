import path from "node:path";
import ts from "typescript";

/** One place where a module names another. */
export interface ModuleReference {
  readonly specifier: string;
  readonly line: number;
  /** `type`: erased at compile time (`import type`, `export type`, `import("x").T`). All else loads the module. */
  readonly kind: "value" | "type";
}

export function lineOf(node: ts.Node): number {
  const source = node.getSourceFile();
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}

/** Visits a node and all below it; `visit` answers false to stay out of a node's children. */
export function walk(node: ts.Node, visit: (node: ts.Node) => boolean | void): void {
  if (visit(node) === false) return;
  ts.forEachChild(node, (child) => walk(child, visit));
}

/** `import.meta.resolve`: the module is named so that another process can load it. */
function isResolve(expression: ts.Expression): boolean {
  return (
    ts.isPropertyAccessExpression(expression) &&
    expression.name.text === "resolve" &&
    ts.isMetaProperty(expression.expression)
  );
}

function referenceOf(node: ts.Node): Omit<ModuleReference, "line"> | undefined {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    // `import { type A }` is not erased under verbatimModuleSyntax: the module still loads. Only `import type` is.
    return {
      specifier: node.moduleSpecifier.text,
      kind: node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword ? "type" : "value",
    };
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier && ts.isStringLiteral(node.moduleSpecifier)) {
    return { specifier: node.moduleSpecifier.text, kind: node.isTypeOnly ? "type" : "value" };
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal)) {
    return { specifier: node.argument.literal.text, kind: "type" };
  }
  if (!ts.isCallExpression(node)) return undefined;
  const isLoad =
    node.expression.kind === ts.SyntaxKind.ImportKeyword ||
    (ts.isIdentifier(node.expression) && node.expression.text === "require") ||
    isResolve(node.expression);
  const [argument] = node.arguments;
  return isLoad && argument && ts.isStringLiteralLike(argument)
    ? { specifier: argument.text, kind: "value" }
    : undefined;
}

/** Every module that this one names: static and dynamic imports, re-exports, import types, `require`, `import.meta.resolve`. */
export function referencesOf(source: ts.SourceFile): readonly ModuleReference[] {
  const references: ModuleReference[] = [];
  walk(source, (node) => {
    const reference = referenceOf(node);
    if (reference) references.push({ ...reference, line: lineOf(node) });
  });
  return references;
}

/** The file that a relative specifier of `file` means, as a path from the root. */
export function resolveRelative(file: string, specifier: string): string {
  return path.posix.normalize(path.posix.join(path.posix.dirname(file), specifier));
}
