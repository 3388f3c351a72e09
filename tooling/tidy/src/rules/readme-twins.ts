import { headingsOf } from "../markdown.ts";
import type { Finding, Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";

const readmeHeadings: readonly string[] = [
  "Invariant",
  "When not to use it",
  "Install",
  "Example",
  "How it works",
  "API",
  "Errors",
  "Guarantees and non-guarantees",
  "Testing with it",
  "Related packages",
  "Licence",
];

/** A reader who knows one README finds his way in all of them. */
export const readmeTwins: Rule = {
  title: "every package README has the agreed headings, in order",
  check(repository) {
    const findings: Finding[] = [];
    for (const { kind, folder, manifest } of shippedProjects(repository)) {
      const file = `${folder}/README.md`;
      if (!repository.has(file)) {
        findings.push({ file, problem: "is missing", instead: `write it, beginning with "# ${manifest.name}"` });
        continue;
      }
      const headings = headingsOf(repository.text(file));
      const first = headings[0]?.title;
      if (headings[0]?.level !== 1 || first !== manifest.name)
        findings.push({
          file,
          line: 1,
          problem: `begins with "${first ?? ""}"`,
          instead: `begin with "# ${manifest.name}"`,
        });
      if (kind !== "packages") continue;
      const found = headings.filter(({ level }) => level === 2).map(({ title }) => title);
      if (found.join("\n") !== readmeHeadings.join("\n"))
        findings.push({
          file,
          problem: `has the headings: ${found.join(" / ") || "none"}`,
          instead: `write, in this order: ${readmeHeadings.join(" / ")}`,
        });
      const command = `npm install ${manifest.name}`;
      if (!repository.text(file).includes(command))
        findings.push({ file, problem: "does not say how to install it", instead: `write "${command}"` });
    }
    return findings;
  },
};
