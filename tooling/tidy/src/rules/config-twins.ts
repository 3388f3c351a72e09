import { isDeepStrictEqual } from "node:util";
import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { projectsOf, shippedProjects } from "../workspace.ts";
import type { Project } from "../workspace.ts";

interface TsConfig {
  readonly references?: readonly { readonly path: string }[];
  readonly [field: string]: unknown;
}

/** Plain modules for tests alone: nothing compiles them. */
const testTools: ReadonlySet<string> = new Set(["@turnkeeper/vitest-config", "@turnkeeper/postgres-server"]);

function expectedReferences(repository: Repository, { kind, manifest, isBundled }: Project): readonly string[] {
  const byName = new Map(projectsOf(repository).map((project) => [project.manifest.name ?? "", project]));
  const { dependencies, peerDependencies, devDependencies } = manifest;
  const imported = { ...dependencies, ...peerDependencies, ...(isBundled ? devDependencies : {}) };
  return Object.keys(imported)
    .filter((name) => !testTools.has(name))
    .flatMap((name) => byName.get(name) ?? [])
    .map((sibling) => (sibling.kind === kind ? `../${sibling.folder.split("/")[1]}` : `../../${sibling.folder}`))
    .toSorted();
}

function referencesIn(config: TsConfig): readonly string[] {
  return (config.references ?? []).map((reference) => reference.path).toSorted();
}

function checkTsConfigs(repository: Repository, project: Project): readonly Finding[] {
  const findings: Finding[] = [];
  const expectations: Readonly<Record<string, unknown>> = {
    "tsconfig.json": {
      extends: "../../tsconfig.base.json",
      compilerOptions: {
        rootDir: "src",
        outDir: "dist",
        tsBuildInfoFile: "dist/.tsbuildinfo",
        // The modules of a bundle are written by the bundle.
        ...(project.isBundled ? { emitDeclarationOnly: true } : {}),
      },
      include: ["src"],
    },
    "tsconfig.test.json": {
      extends: "../../tsconfig.base.json",
      compilerOptions: {
        rootDir: ".",
        noEmit: true,
        // Tests may look behind the face; nothing is emitted, so no import needs rewriting.
        allowImportingTsExtensions: true,
        rewriteRelativeImportExtensions: false,
        isolatedDeclarations: false,
        declaration: false,
        declarationMap: false,
        composite: false,
        incremental: true,
        tsBuildInfoFile: ".tstest/.tsbuildinfo",
      },
      include: ["test", "vitest.config.ts"],
    },
  };
  for (const [name, expected] of Object.entries(expectations)) {
    const file = `${project.folder}/${name}`;
    if (!repository.has(file)) {
      findings.push({ file, problem: "is missing", instead: "copy it from a twin" });
      continue;
    }
    const { references: _references, ...shape } = JSON.parse(repository.text(file)) as TsConfig;
    if (!isDeepStrictEqual(shape, expected))
      findings.push({
        file,
        problem: "differs from its twins",
        instead: `beside "references", write ${JSON.stringify(expected)}`,
      });
  }
  const build = `${project.folder}/tsconfig.json`;
  if (repository.has(build)) {
    const wanted = expectedReferences(repository, project);
    const found = referencesIn(JSON.parse(repository.text(build)) as TsConfig);
    if (wanted.join() !== found.join())
      findings.push({
        file: build,
        problem: `references ${found.join(", ") || "nothing"}`,
        instead: `reference the workspace dependencies: ${wanted.join(", ") || "none"}`,
      });
  }
  const test = `${project.folder}/tsconfig.test.json`;
  if (repository.has(test) && referencesIn(JSON.parse(repository.text(test)) as TsConfig)[0] !== ".") {
    findings.push({
      file: test,
      problem: "does not reference its own source project",
      instead: 'write "references": [{ "path": "." }]',
    });
  }
  return findings;
}

/** The compiler and the test runner see every package the same way. */
export const configTwins: Rule = {
  title: "every shipped package has the same tsconfig, vitest config and folders",
  check(repository) {
    const findings: Finding[] = [];
    const solution = JSON.parse(repository.text("tsconfig.json")) as TsConfig;
    const built = new Set((solution.references ?? []).map((reference) => reference.path));
    for (const project of shippedProjects(repository)) {
      findings.push(...checkTsConfigs(repository, project));
      for (const reference of [project.folder, `${project.folder}/tsconfig.test.json`]) {
        if (!built.has(reference))
          findings.push({
            file: "tsconfig.json",
            problem: `does not build ${reference}`,
            instead: "add it to references",
          });
      }
      const config = `${project.folder}/vitest.config.ts`;
      const name = project.kind === "packages" ? project.key : (project.folder.split("/")[1] ?? "");
      const expected = `import { packageConfig } from "@turnkeeper/vitest-config";\n\nexport default packageConfig("${name}");\n`;
      if (!repository.has(config) || repository.text(config) !== expected)
        findings.push({
          file: config,
          problem: "differs from its twins",
          instead: `write exactly: ${expected.replaceAll("\n", " ").trim()}`,
        });
      if (project.kind === "packages" && !project.sources.includes(`${project.folder}/src/index.ts`))
        findings.push({
          file: `${project.folder}/src/index.ts`,
          problem: "is missing",
          instead: "a package has a face",
        });
      if (project.tests.length === 0)
        findings.push({
          file: `${project.folder}/test`,
          problem: "holds no test",
          instead: "name a test file by the behaviour it shows",
        });
    }
    return findings;
  },
};
