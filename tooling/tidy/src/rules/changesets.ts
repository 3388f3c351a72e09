import type { Finding, Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";

const changesetPath = /^\.changeset\/[^/]+\.md$/;
const entryPattern = /^"([^"]+)": (major|minor|patch)$/;

/** What stands in a changelog is read by people who use the packages: it names packages that exist, and says something. */
export const changesetsSpeak: Rule = {
  title: "every changeset names packages that exist, and says what its reader will see",
  check(repository) {
    const names = new Set(shippedProjects(repository).map(({ manifest }) => manifest.name));
    const findings: Finding[] = [];
    for (const file of repository.paths) {
      if (!changesetPath.test(file) || file === ".changeset/README.md") continue;
      const match = /^---\n(?<entries>(?:.*\n)*?)---\n(?<body>[\s\S]*)$/.exec(repository.text(file));
      if (!match?.groups) {
        findings.push({
          file,
          problem: "has no front matter",
          instead: 'begin with --- and lines such as "@turnkeeper/kernel": patch',
        });
        continue;
      }
      const entries = (match.groups["entries"] ?? "").split("\n").filter((line) => line !== "");
      for (const entry of entries) {
        const name = entryPattern.exec(entry)?.[1];
        if (name === undefined)
          findings.push({ file, problem: `has the line ${entry}`, instead: 'write "NAME": major, minor or patch' });
        else if (!names.has(name))
          findings.push({
            file,
            problem: `names ${name}, which is not published`,
            instead: "name a package or an app",
          });
      }
      if (entries.length > 0 && !/^[A-Z].*[.!]$/s.test((match.groups["body"] ?? "").trim())) {
        findings.push({
          file,
          problem: "does not speak to the user",
          instead: "write one or two sentences: verb first, the API by name, what they must do",
        });
      }
    }
    return findings;
  },
};
