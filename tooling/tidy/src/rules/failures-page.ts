import { headingsOf, tableUnder } from "../markdown.ts";
import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { caseTitlesOf, testTitlesOf } from "../test-titles.ts";

const failuresPage = "FAILURES.md";
const testsColumn = "shown by";

/** One test as the page names it: `path › suite › title`, each test of a cell on a line of its own. */
interface NamedTest {
  readonly file: string;
  readonly titles: readonly string[];
}

function namedTests(cell: string): readonly NamedTest[] {
  return cell
    .split("<br>")
    .map((one) => one.trim())
    .filter((one) => one !== "")
    .map((one) => {
      const [file = "", ...titles] = one.split(" › ");
      return { file: file.replaceAll("`", "").trim(), titles };
    });
}

/** Every title of a file: its tests and suites, and its conformance cases. */
function titlesOf(repository: Repository, file: string): ReadonlySet<string> {
  const source = repository.source(file);
  return new Set([...testTitlesOf(source), ...caseTitlesOf(source)].map(({ title }) => title));
}

function faultOf(repository: Repository, { file, titles }: NamedTest): string | undefined {
  if (titles.length === 0) return `"${file}" names no test`;
  if (!file.endsWith(".ts") || !repository.has(file)) return `there is no ${file}`;
  const known = titlesOf(repository, file);
  const missing = titles.find((title) => !known.has(title));
  return missing === undefined ? undefined : `${file} has no test or suite with the title "${missing}"`;
}

/** A page that says what does not happen here is worth as much as the tests it names. */
export const failuresAreShown: Rule = {
  title: "every row of FAILURES.md names the tests that play its schedule, and each stands there under that title",
  check(repository) {
    if (!repository.has(failuresPage)) return [];
    const text = repository.text(failuresPage);
    const rows = headingsOf(text)
      .filter(({ level }) => level === 2)
      .flatMap(({ title }) => tableUnder(text, title));
    return rows.flatMap(({ line, cells }): readonly Finding[] => {
      const cell = cells[testsColumn];
      if (cell === undefined) return [];
      const tests = namedTests(cell);
      const problems =
        tests.length === 0 ? ["the row names no test"] : tests.flatMap((test) => faultOf(repository, test) ?? []);
      const instead = "name the test that plays this schedule, as `path › suite › title`, or write one";
      return problems.map((problem) => ({ file: failuresPage, line, problem, instead }));
    });
  },
};
