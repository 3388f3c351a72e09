import ts from "typescript";
import { walk } from "../module-references.ts";
import type { Finding, Rule } from "../rule.ts";
import { testTitlesOf } from "../test-titles.ts";
import { projectsOf } from "../workspace.ts";

const conditional: ReadonlySet<string> = new Set(["skip", "todo", "skipIf", "runIf", "fails"]);

/** Whether a comment ends on the line above, or stands on the line itself. */
function hasReason(text: string, line: number): boolean {
  const lines = text.split("\n");
  const own = lines[line - 1] ?? "";
  const above = (lines[line - 2] ?? "").trim();
  return own.includes("//") || above.startsWith("//") || above.endsWith("*/");
}

/** A suite that silently runs less than it seems to is worse than none. */
export const noSilentSkips: Rule = {
  title: "no test is focused, and one that may be skipped says why beside it",
  check(repository) {
    const findings: Finding[] = [];
    for (const { tests } of projectsOf(repository)) {
      for (const file of tests) {
        for (const { line, modifiers, title, condition } of testTitlesOf(repository.source(file))) {
          if (modifiers.includes("only"))
            findings.push({
              file,
              line,
              problem: `"${title}" is focused: all others are left out`,
              instead: "remove .only",
            });
          const modifier = modifiers.find((one) => conditional.has(one));
          // A condition with a name says what is missing where the test is left out.
          if (modifier !== undefined && condition === undefined && !hasReason(repository.text(file), line)) {
            findings.push({
              file,
              line,
              problem: `"${title}" may be left out (.${modifier}) and does not say why`,
              instead:
                "give the condition a name (hasProcessTable), or write the reason as a comment on the line above",
            });
          }
        }
      }
    }
    return findings;
  },
};

const asserting: ReadonlySet<string> = new Set(["expect", "expectTypeOf", "assert", "assertType", "fc"]);

/** A test file without an assertion cannot fail. */
export const testsAssert: Rule = {
  title: "every test file makes an assertion",
  check(repository) {
    return projectsOf(repository).flatMap(({ tests }) =>
      tests
        .filter((file) => file.endsWith(".test.ts"))
        .flatMap((file): Finding[] => {
          let asserts = false;
          walk(repository.source(file), (node) => {
            if (ts.isCallExpression(node)) {
              walk(node.expression, (inner) => {
                if (ts.isIdentifier(inner) && asserting.has(inner.text)) asserts = true;
              });
            }
            return !asserts;
          });
          return asserts
            ? []
            : [
                {
                  file,
                  problem: "asserts nothing, so it cannot fail",
                  instead: "expect the outcome that the title promises",
                },
              ];
        }),
    );
  },
};
