import type { Finding, Rule } from "../rule.ts";
import { unspelled } from "../unspelled.ts";
import { projectsOf } from "../workspace.ts";

const bannedComments: readonly { readonly pattern: RegExp; readonly problem: string; readonly instead: string }[] = [
  {
    pattern: unspelled("", "@ts-", "(ignore|nocheck)"),
    problem: "the compiler is told to look away",
    instead: "fix the type",
  },
  {
    pattern: unspelled("", "(oxlint|eslint|biome)-", "(disable|ignore)"),
    problem: "a lint rule is switched off",
    instead: "change the code",
  },
  {
    pattern: unspelled("", "\\b(TO", "DO|FIX", "ME|XX", "X)\\b"),
    problem: "an unfinished place",
    instead: "finish it, or say in the README what is not there",
  },
];

const expectError = unspelled("", "@ts-", "expect-error(?<reason>.*)$");

/** What is left for later is forgotten; what is switched off stays off. */
export const noLooseEnds: Rule = {
  title: "no code is left unfinished, and neither compiler nor lint is switched off",
  check(repository) {
    const findings: Finding[] = [];
    for (const { sources, tests } of projectsOf(repository)) {
      for (const file of [...sources, ...tests]) {
        for (const [index, content] of repository.text(file).split("\n").entries()) {
          const line = index + 1;
          for (const { pattern, problem, instead } of bannedComments) {
            if (pattern.test(content)) findings.push({ file, line, problem, instead });
          }
          // In a test it is the assertion that something does not compile; it says what.
          const expected = expectError.exec(content);
          if (expected && (sources.includes(file) || (expected.groups?.["reason"] ?? "").trim().length < 3)) {
            findings.push({
              file,
              line,
              problem: "an error of types is expected here",
              instead: "only a test may, followed by what must not compile",
            });
          }
        }
      }
    }
    return findings;
  },
};
