import ts from "typescript";
import { lineOf, walk } from "./module-references.ts";
import type { Repository } from "./repository.ts";
import { shippedProjects } from "./workspace.ts";

/** One test by its title; `modifiers` are the names chained on the call: `only`, `skipIf`, `each`. */
export interface TestTitle {
  readonly title: string;
  readonly line: number;
  readonly modifiers: readonly string[];
  /** The condition of `skipIf` or `runIf`, where it has a name. */
  readonly condition?: string;
}

const testFunctions: ReadonlySet<string> = new Set(["it", "test", "describe"]);

/** The chain of a call such as `it.skipIf(condition)("title")`: its root name and the members on the way. */
function chainOf(
  expression: ts.Expression,
): { readonly root: string; readonly members: readonly string[] } | undefined {
  if (ts.isIdentifier(expression)) return { root: expression.text, members: [] };
  if (ts.isCallExpression(expression) || ts.isTaggedTemplateExpression(expression)) {
    return chainOf(ts.isCallExpression(expression) ? expression.expression : expression.tag);
  }
  if (!ts.isPropertyAccessExpression(expression)) return undefined;
  const inner = chainOf(expression.expression);
  return inner && { root: inner.root, members: [...inner.members, expression.name.text] };
}

/** `hasProcessTable` in `it.runIf(hasProcessTable)("title")` and `it.skipIf(!hasProcessTable)("title")`. */
function conditionOf(expression: ts.Expression): string | undefined {
  if (!ts.isCallExpression(expression)) return undefined;
  const [argument] = expression.arguments;
  const condition = argument && ts.isPrefixUnaryExpression(argument) ? argument.operand : argument;
  return condition && ts.isIdentifier(condition) ? condition.text : undefined;
}

/** The fixed beginning of a string or a template; what follows the first placeholder is not known here. */
function fixedText(node: ts.Node | undefined): string | undefined {
  if (!node) return undefined;
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) return node.head.text;
  return ts.isBinaryExpression(node) ? fixedText(node.left) : undefined;
}

function caseTitle(node: ts.ObjectLiteralExpression): string | undefined {
  const textOf = (key: string): string | undefined => {
    const property = node.properties.find((one) => one.name && ts.isIdentifier(one.name) && one.name.text === key);
    return property && ts.isPropertyAssignment(property) ? fixedText(property.initializer) : undefined;
  };
  const id = textOf("id");
  const title = textOf("title");
  return id === undefined || title === undefined ? undefined : `${id}: ${title}`;
}

/** Calls of a test function with a title: tests, suites, and tests made by `each`, `skipIf` and the like. */
export function testTitlesOf(source: ts.SourceFile): readonly TestTitle[] {
  const titles: TestTitle[] = [];
  walk(source, (node) => {
    if (!ts.isCallExpression(node)) return;
    const chain = chainOf(node.expression);
    const title = fixedText(node.arguments[0]);
    if (!chain || !testFunctions.has(chain.root) || title === undefined) return;
    const condition = conditionOf(node.expression);
    titles.push({
      title,
      line: lineOf(node),
      modifiers: chain.members,
      ...(condition === undefined ? {} : { condition }),
    });
  });
  return titles;
}

/** Conformance cases, which are data: every object literal with an `id` and a `title`. Every adapter runs them as `id: title`. */
export function caseTitlesOf(source: ts.SourceFile): readonly TestTitle[] {
  const titles: TestTitle[] = [];
  walk(source, (node) => {
    const title = ts.isObjectLiteralExpression(node) ? caseTitle(node) : undefined;
    if (title !== undefined) titles.push({ title, line: lineOf(node), modifiers: [] });
  });
  return titles;
}

/** A title and where it stands. */
export interface TitledTest {
  readonly title: string;
  readonly file: string;
}

/** Every test, suite and conformance case of what is shipped. */
export function titledTests(repository: Repository): readonly TitledTest[] {
  return shippedProjects(repository).flatMap(({ folder, tests, sources }) => {
    const cases = sources.filter((file) => file.startsWith(`${folder}/src/testing/`));
    return [
      ...tests.flatMap((file) => testTitlesOf(repository.source(file)).map(({ title }) => ({ title, file }))),
      ...cases.flatMap((file) => caseTitlesOf(repository.source(file)).map(({ title }) => ({ title, file }))),
    ];
  });
}
