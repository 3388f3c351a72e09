import type { Finding, Rule } from "../rule.ts";
import { unspelled } from "../unspelled.ts";

interface BannedText {
  readonly pattern: RegExp;
  readonly problem: string;
  readonly instead: string;
}

const banned: readonly BannedText[] = [
  {
    pattern: unspelled(
      "i",
      "\\b(registry\\.npm",
      "js\\.org|registry\\.yarn",
      "pkg\\.com|npm\\.pkg\\.git",
      "hub\\.com|un",
      "pkg\\.com|registry\\.npm",
      "mirror\\.com)",
    ),
    problem: "names a package registry",
    instead: "name the package; whoever installs has a registry of his own",
  },
  {
    pattern: /(^|[^A-Za-z0-9_.~/-])\/(home|root|Users|work|tmp)\/[A-Za-z0-9]/,
    problem: "names a path of one machine",
    instead: "use a path relative to the file, or os.tmpdir() and os.homedir()",
  },
  {
    pattern: unspelled(
      "i",
      "generated (with|by) \\[?(cla",
      "ude|chat",
      "gpt|cop",
      "ilot|cur",
      "sor)|co-authored-",
      "by:|cla",
      "ude code|github cop",
      "ilot|as an ai (language )?",
      "model",
    ),
    problem: "speaks of how the text was made",
    instead: "speak of the product alone",
  },
];

// Text that was not written here: resolved versions, licences.
const foreign: ReadonlySet<string> = new Set(["pnpm-lock.yaml", "tooling/bootstrap/package-lock.json"]);
const binaryEndings: readonly string[] = [".db", ".png", ".gif", ".ico", ".gz"];

/** The repository reads the same on every machine, and speaks of the product alone. */
export const plainWording: Rule = {
  title: "no file names a registry host, a path of one machine, or how it was made",
  check(repository) {
    const findings: Finding[] = [];
    for (const file of repository.paths) {
      if (binaryEndings.some((ending) => file.endsWith(ending))) continue;
      for (const [index, line] of repository.text(file).split("\n").entries()) {
        for (const { pattern, problem, instead } of banned) {
          // A lockfile may quote descriptions; hosts and paths it may not hold either.
          if (foreign.has(file) && problem.startsWith("speaks")) continue;
          const match = pattern.exec(line);
          if (match) findings.push({ file, line: index + 1, problem: `${problem} (${match[0].trim()})`, instead });
        }
      }
    }
    return findings;
  },
};
