import { isBuiltin } from "node:module";
import { architecturePage, packageRows } from "../architecture.ts";
import type { PackageRow } from "../architecture.ts";
import { referencesOf, resolveRelative } from "../module-references.ts";
import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { isRelative, projectsOf, shippedProjects, splitSpecifier } from "../workspace.ts";

const columnOf = { value: "may import at run time", type: "types only" } as const;

function allows(row: PackageRow, packageName: string, siblingKey: string | undefined, kind: "value" | "type"): boolean {
  if (siblingKey === undefined) {
    return (
      row.external === "everything" ||
      row.external.some(
        (one) => one === packageName || (one.endsWith("/*") && packageName.startsWith(one.slice(0, -1))),
      )
    );
  }
  if (row.runTime === "everything" || row.runTime.includes(siblingKey)) return true;
  return kind === "type" && row.typesOnly.includes(siblingKey);
}

/** Imports of shipped source go only where the table in ARCHITECTURE.md lets them. */
export const importDirection: Rule = {
  title: "a package imports only what its row in ARCHITECTURE.md allows",
  check(repository) {
    const rows = packageRows(repository);
    const findings: Finding[] = [];
    const keys = new Map(projectsOf(repository).map((project) => [project.manifest.name ?? "", project.key]));
    for (const project of shippedProjects(repository)) {
      const row = rows.find(({ key }) => key === project.key);
      if (!row) {
        const instead = "add its row: what it owns and what it may import";
        findings.push({
          file: architecturePage,
          problem: `the table "Packages and import direction" has no row for ${project.key}`,
          instead,
        });
        continue;
      }
      for (const file of project.sources) {
        for (const { specifier, kind, line } of referencesOf(repository.source(file))) {
          if (isRelative(specifier) || isBuiltin(specifier)) continue;
          const { packageName } = splitSpecifier(specifier);
          if (packageName === project.manifest.name) {
            findings.push({
              file,
              line,
              problem: `${project.key} imports itself by name`,
              instead: "import the file by a relative path",
            });
          } else if (!allows(row, packageName, keys.get(packageName), kind)) {
            const column = keys.has(packageName) ? columnOf[kind] : "from npm";
            const what = kind === "type" ? "types of " : "";
            const instead = `take it as an argument (a function or a two-line port), or change the column "${column}" of ${architecturePage} with a reason`;
            findings.push({ file, line, problem: `${project.key} may not import ${what}${packageName}`, instead });
          }
        }
      }
    }
    for (const { key, line } of rows) {
      if (key.endsWith("/*") || [...keys.values()].includes(key)) continue;
      findings.push({
        file: architecturePage,
        line,
        problem: `the table names ${key}, which does not exist`,
        instead: "remove the row, or name the folder as it is",
      });
    }
    return findings;
  },
};

/** Relative imports stay inside the package, and source never reaches into tests. */
export const relativeImports: Rule = {
  title: "a relative import stays inside its package, and source imports no test",
  check(repository) {
    const findings: Finding[] = [];
    for (const project of projectsOf(repository)) {
      for (const file of [...project.sources, ...project.tests]) {
        for (const { specifier, line } of referencesOf(repository.source(file))) {
          if (!isRelative(specifier)) continue;
          const target = resolveRelative(file, specifier);
          if (!target.startsWith(`${project.folder}/`)) {
            findings.push({
              file,
              line,
              problem: `${specifier} leaves ${project.folder}`,
              instead: "import the other package by its name",
            });
          } else if (file.startsWith(`${project.folder}/src/`) && !target.startsWith(`${project.folder}/src/`)) {
            findings.push({
              file,
              line,
              problem: `${specifier} leaves src`,
              instead: "move what is shared into src, or the code that needs it into test",
            });
          }
        }
      }
    }
    return findings;
  },
};

function doorsOf(repository: Repository): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    projectsOf(repository).map(({ manifest }) => [manifest.name ?? "", new Set(Object.keys(manifest.exports ?? {}))]),
  );
}

/** Siblings are entered through the doors of their `exports`, and fakes stay out of shipped code. */
export const packageDoors: Rule = {
  title: "a sibling is imported through a door it exports, and its ./testing door by tests only",
  check(repository) {
    const doors = doorsOf(repository);
    const findings: Finding[] = [];
    for (const project of projectsOf(repository)) {
      for (const file of [...project.sources, ...project.tests]) {
        for (const { specifier, line } of referencesOf(repository.source(file))) {
          if (isRelative(specifier)) continue;
          const { packageName, door } = splitSpecifier(specifier);
          const exported = doors.get(packageName);
          if (!exported) continue;
          if (!exported.has(door)) {
            const open = [...exported].filter((one) => one !== "./package.json").join(", ");
            findings.push({
              file,
              line,
              problem: `${packageName} has no door ${door}`,
              instead: open === "" ? "it exports nothing" : `import from one of: ${open}`,
            });
          } else if (
            door === "./testing" &&
            file.startsWith(`${project.folder}/src/`) &&
            !file.startsWith(`${project.folder}/src/testing/`) &&
            project.kind !== "tooling"
          ) {
            findings.push({
              file,
              line,
              problem: `shipped source imports the fakes of ${packageName}`,
              instead: "pass the real thing in, and the fake from the test",
            });
          }
        }
      }
    }
    return findings;
  },
};
