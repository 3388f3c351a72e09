import ts from "typescript";
import { namesIn, tableUnder } from "../markdown.ts";
import { walk } from "../module-references.ts";
import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";

export const glossaryPage = "GLOSSARY.md";

/** Every identifier and string literal of some modules: names of things, of members, and the kinds of unions. */
function vocabulary(repository: Repository, files: readonly string[]): ReadonlySet<string> {
  const words = new Set<string>();
  for (const file of files) {
    walk(repository.source(file), (node) => {
      if (ts.isIdentifier(node) || ts.isStringLiteralLike(node)) words.add(node.text);
    });
  }
  return words;
}

/** `Turn`, `acquire()`, `TurnInterrupt.steer`, `kind: "granted"`: the words that must occur. */
function wordsOf(identifier: string): readonly string[] {
  return identifier.split(/[^\w.-]+|\.(?=\w)/).filter((word) => word !== "");
}

/** A term that no code knows misleads; a term under two meanings misleads more. */
export const glossaryIsCurrent: Rule = {
  title: "every term of GLOSSARY.md has one row, an owner that exists, and identifiers that its code uses",
  check(repository) {
    if (!repository.has(glossaryPage))
      return [
        { file: glossaryPage, problem: "is missing", instead: "write the terms of the project, one meaning each" },
      ];
    const findings: Finding[] = [];
    const words = new Map(
      shippedProjects(repository).map(({ key, sources }) => [key, vocabulary(repository, sources)]),
    );
    const terms = new Set<string>();
    for (const { line, cells } of tableUnder(repository.text(glossaryPage), "Terms")) {
      const term = cells["term"] ?? "";
      if (terms.has(term))
        findings.push({
          file: glossaryPage,
          line,
          problem: `"${term}" has two rows`,
          instead: "one term, one meaning",
        });
      terms.add(term);
      for (const column of ["meaning", "not to be confused with", "owner"]) {
        if ((cells[column] ?? "") === "")
          findings.push({
            file: glossaryPage,
            line,
            problem: `"${term}" has an empty "${column}"`,
            instead: "fill it, or write –",
          });
      }
      const owners = namesIn(cells["owner"] ?? "");
      for (const owner of owners)
        if (!words.has(owner))
          findings.push({
            file: glossaryPage,
            line,
            problem: `"${term}" is owned by ${owner}, which does not exist`,
            instead: "name the package",
          });
      for (const identifier of namesIn(cells["identifier"] ?? "")) {
        const missing = wordsOf(identifier).filter((word) => !owners.some((owner) => words.get(owner)?.has(word)));
        if (missing.length > 0)
          findings.push({
            file: glossaryPage,
            line,
            problem: `"${term}": ${owners.join(", ")} knows no ${missing.join(", ")}`,
            instead: "write the identifier as it stands in the code",
          });
      }
    }
    if (terms.size === 0)
      findings.push({
        file: glossaryPage,
        problem: 'has no table under "Terms"',
        instead: "write one with the columns term, meaning, not to be confused with, owner, identifier",
      });
    return findings;
  },
};
