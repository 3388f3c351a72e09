import { isBuiltin } from "node:module";
import ts from "typescript";
import { referencesOf, walk } from "../module-references.ts";
import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { isRelative, projectsOf, splitSpecifier } from "../workspace.ts";
import type { Project } from "../workspace.ts";

function importedBy(repository: Repository, files: readonly string[]): ReadonlySet<string> {
  const names = files.flatMap((file) =>
    referencesOf(repository.source(file))
      .filter(({ specifier }) => !isRelative(specifier) && !isBuiltin(specifier))
      .map(({ specifier }) => splitSpecifier(specifier).packageName),
  );
  return new Set(names);
}

/** The project in which the examples of the root's pages stand while they run: they import what the reader would. */
const exampleProject = "tooling/doctest";

/** Plain scripts beside `src`: they run, so what they import is a dependency. */
function scriptsOf(repository: Repository, { folder }: Project): readonly string[] {
  return repository.paths.filter(
    (file) => file.startsWith(`${folder}/`) && file.endsWith(".mjs") && !/\/(src|test)\//.test(file),
  );
}

/** `["--import", "tsx", …]`: named on a command line, in place of an import. */
function startsTsx(repository: Repository, files: readonly string[]): boolean {
  const isText = (node: ts.Expression | undefined, text: string): boolean =>
    node !== undefined && ts.isStringLiteral(node) && node.text === text;
  let starts = false;
  for (const file of files) {
    walk(repository.source(file), (node) => {
      if (!ts.isArrayLiteralExpression(node)) return;
      starts ||= node.elements.some((one, index) => isText(one, "--import") && isText(node.elements[index + 1], "tsx"));
    });
  }
  return starts;
}

// Used without an import: the runner that the test script starts, and type declarations of an imported package.
function isImplied(name: string, imported: ReadonlySet<string>, folder: string): boolean {
  if (folder === exampleProject && name.startsWith("@turnkeeper/")) return true;
  return name === "vitest" || (name.startsWith("@types/") && imported.has(name.slice("@types/".length)));
}

function checkProject(repository: Repository, project: Project): readonly Finding[] {
  const file = `${project.folder}/package.json`;
  const findings: Finding[] = [];
  const { manifest } = project;
  const config = `${project.folder}/vitest.config.ts`;
  const running = [...project.sources, ...scriptsOf(repository, project)];
  const bySource = new Set([...importedBy(repository, running), ...(startsTsx(repository, running) ? ["tsx"] : [])]);
  const testing = [...project.tests, ...(repository.has(config) ? [config] : [])];
  const byTests = new Set([
    ...importedBy(repository, testing),
    ...(startsTsx(repository, testing) && project.kind === "tooling" ? ["tsx"] : []),
  ]);
  const shipped = new Set(
    Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies }),
  );
  const development = new Set(Object.keys(manifest.devDependencies ?? {}));
  const own = manifest.name ?? "";

  for (const name of bySource) {
    if (name === own || shipped.has(name)) continue;
    if (project.isBundled && development.has(name)) continue;
    // Types too: they stand in the published .d.ts, so a consumer's compiler needs the package.
    const place = project.isBundled ? "devDependencies" : "dependencies";
    findings.push({
      file,
      problem: `src imports ${name}, which is not in ${place}`,
      instead: `add "${name}" to ${place}`,
    });
  }
  for (const name of shipped) {
    // What a bundle leaves outside, its modules import, not its source: the bundle itself compares the two.
    if (!bySource.has(name) && !project.isBundled)
      findings.push({
        file,
        problem: `${name} is in dependencies and src does not import it`,
        instead: byTests.has(name) ? "move it to devDependencies" : "remove it",
      });
  }
  for (const name of byTests) {
    if (name !== own && !shipped.has(name) && !development.has(name)) {
      findings.push({
        file,
        problem: `test imports ${name}, which is not declared`,
        instead: `add "${name}" to devDependencies`,
      });
    }
  }
  const imported = new Set([...bySource, ...byTests]);
  for (const name of development) {
    if (shipped.has(name))
      findings.push({
        file,
        problem: `${name} is in dependencies and in devDependencies`,
        instead: "remove it from devDependencies",
      });
    else if (!(project.isBundled ? imported : byTests).has(name) && !isImplied(name, imported, project.folder))
      findings.push({ file, problem: `${name} is in devDependencies and no test imports it`, instead: "remove it" });
  }
  return findings;
}

/** package.json and the imports say the same. Tooling that is not TypeScript (plain scripts) is left out. */
export const declaredDependencies: Rule = {
  title: "package.json declares what is imported, and nothing else",
  check(repository) {
    return projectsOf(repository)
      .filter(({ sources, tests }) => sources.length + tests.length > 0)
      .flatMap((project) => checkProject(repository, project));
  },
};

/** Workspace packages by `workspace:^`, all others by the catalog: one version of each in the whole repository. */
export const dependencyVersions: Rule = {
  title: "versions come from the catalog, siblings from the workspace",
  check(repository) {
    const projects = projectsOf(repository);
    const siblings = new Set(projects.map(({ manifest }) => manifest.name));
    return projects
      .filter(({ folder }) => folder !== "tooling/bootstrap")
      .flatMap(({ folder, manifest }) =>
        Object.entries({
          ...manifest.dependencies,
          ...manifest.peerDependencies,
          ...manifest.optionalDependencies,
          ...manifest.devDependencies,
        }).flatMap(([name, version]): Finding[] => {
          const wanted = siblings.has(name) ? "workspace:^" : "catalog:";
          if (version === wanted) return [];
          return [
            {
              file: `${folder}/package.json`,
              problem: `${name} is asked for as ${version}`,
              instead: `write "${wanted}"${siblings.has(name) ? "" : " and pin it in pnpm-workspace.yaml"}`,
            },
          ];
        }),
      );
  },
};

/** Two copies of the addon in one process would be two SQLites with two ideas of the same POSIX locks. */
export const oneSqlite: Rule = {
  title: "the lockfile holds one better-sqlite3",
  check(repository) {
    const file = "pnpm-lock.yaml";
    if (!repository.has(file)) return [];
    const versions = new Set(
      [...repository.text(file).matchAll(/^ {2}'?better-sqlite3@([^:('\s]+)/gm)].map(([, version]) => version),
    );
    if (versions.size <= 1) return [];
    return [
      {
        file,
        problem: `better-sqlite3 is resolved to ${[...versions].join(" and ")}`,
        instead: "pin one version in the catalog; a second SQLite in a process cancels the locks of the first",
      },
    ];
  },
};
