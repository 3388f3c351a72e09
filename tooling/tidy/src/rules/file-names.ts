import type { Finding, Rule } from "../rule.ts";
import { projectsOf } from "../workspace.ts";

const emptyNames: ReadonlySet<string> = new Set([
  "util",
  "utils",
  "helper",
  "helpers",
  "common",
  "lib",
  "types",
  "misc",
  "shared",
  "constants",
  "interfaces",
]);
const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*\.ts$/;

/** The list of a package's files is its table of contents; a name that says nothing hides a noun that is missing. */
export const tellingFileNames: Rule = {
  title: "a file or folder is named by the concept it holds, in kebab-case",
  check(repository) {
    const findings: Finding[] = [];
    for (const { sources, tests, folder } of projectsOf(repository)) {
      for (const file of [...sources, ...tests]) {
        const parts = file.slice(folder.length + 1).split("/");
        for (const part of parts) {
          if (emptyNames.has(part.replace(/\..*$/, "")))
            findings.push({
              file,
              problem: `"${part}" names no concept`,
              instead: "name it by a noun of GLOSSARY.md, or put each piece with the concept it serves",
            });
        }
        const name = parts.at(-1) ?? "";
        if (!kebab.test(name))
          findings.push({ file, problem: `"${name}" is not kebab-case`, instead: "write lower case with dashes" });
      }
      for (const file of tests) {
        const isTest = /\.test(-d)?\.ts$/.test(file);
        const isSupport =
          file.slice(`${folder}/test/`.length).includes("/") || !/test/.test(file.split("/").at(-1) ?? "");
        if (!isTest && !isSupport)
          findings.push({
            file,
            problem: "the runner does not see it as a test",
            instead: "end the name with .test.ts",
          });
      }
    }
    return findings;
  },
};
