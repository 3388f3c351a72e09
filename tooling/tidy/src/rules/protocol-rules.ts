import { architecturePage, protocolRules } from "../architecture.ts";
import type { Rule } from "../rule.ts";
import { titledTests } from "../test-titles.ts";

const titlePattern = /^rule (7\.\d+): \S/;

/** A rule of the protocol closes a schedule; the test that shows it is found by the rule's number. */
export const protocolRulesShown: Rule = {
  title: "every rule of ARCHITECTURE.md §7 that holds has a test whose title begins with its number",
  check(repository) {
    const rules = protocolRules(repository);
    const shown = titledTests(repository).flatMap(({ title, file }) => {
      const number = titlePattern.exec(title)?.[1];
      return number === undefined ? [] : [{ number, title, file }];
    });
    const missing = rules
      .filter(({ number, isBegun }) => isBegun && !shown.some((one) => one.number === number))
      .map(({ number, line }) => ({
        file: architecturePage,
        line,
        problem: `no test title begins with "rule ${number}: "`,
        instead: `title the test, or the suite, that shows it "rule ${number}: <what it says>", or name ${number} as not begun below the rules`,
      }));
    const strays = shown.flatMap(({ number, title, file }) => {
      const rule = rules.find((one) => one.number === number);
      if (rule?.isBegun) return [];
      const problem = `the title "${title}" shows rule ${number}, which ${rule ? "has not begun" : "does not exist"}`;
      return [{ file, problem, instead: `name the rule of ${architecturePage} §7 that is meant` }];
    });
    return [...missing, ...strays];
  },
};
