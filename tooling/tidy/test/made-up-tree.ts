import { repositoryOf } from "../src/repository.ts";
import type { Repository } from "../src/repository.ts";
import { describeFinding } from "../src/rule.ts";
import type { Rule } from "../src/rule.ts";

interface MadeUpProject {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const headings = [
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

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The files of one healthy project; a test overwrites the one it wants to be ill. */
function project(folder: string, name: string, made: MadeUpProject = {}): Readonly<Record<string, string>> {
  const siblings = Object.keys(made.dependencies ?? {}).filter((one) => one.startsWith("@turnkeeper/"));
  const up = folder.startsWith("packages/") ? "../" : "../../packages/";
  const references = siblings.map((one) => ({ path: `${up}${one.slice("@turnkeeper/".length)}` }));
  const short = folder.split("/")[1] ?? "";
  const base = {
    extends: "../../tsconfig.base.json",
    compilerOptions: { rootDir: "src", outDir: "dist", tsBuildInfoFile: "dist/.tsbuildinfo" },
    include: ["src"],
  };
  const options = {
    rootDir: ".",
    noEmit: true,
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: false,
    isolatedDeclarations: false,
    declaration: false,
    declarationMap: false,
    composite: false,
    incremental: true,
    tsBuildInfoFile: ".tstest/.tsbuildinfo",
  };
  return {
    [`${folder}/package.json`]: json({
      name,
      version: "0.0.0",
      description: "Does one thing.",
      license: "MIT",
      repository: { type: "git", url: "git+https://github.com/turnkeeper/turnkeeper.git", directory: folder },
      files: ["dist", "src", "!**/*.tsbuildinfo"],
      type: "module",
      sideEffects: false,
      exports: {
        ".": { "@turnkeeper/source": "./src/index.ts", types: "./dist/index.d.ts", default: "./dist/index.js" },
        "./package.json": "./package.json",
      },
      publishConfig: { access: "public" },
      ...(made.dependencies ? { dependencies: made.dependencies } : {}),
      devDependencies: made.devDependencies ?? { "@turnkeeper/vitest-config": "workspace:^", vitest: "catalog:" },
      engines: { node: ">=20.19.0" },
    }),
    [`${folder}/tsconfig.json`]: json({ ...base, ...(references.length > 0 ? { references } : {}) }),
    [`${folder}/tsconfig.test.json`]: json({
      extends: base.extends,
      compilerOptions: options,
      include: ["test", "vitest.config.ts"],
      references: [{ path: "." }],
    }),
    [`${folder}/vitest.config.ts`]: `import { packageConfig } from "@turnkeeper/vitest-config";\n\nexport default packageConfig("${short}");\n`,
    [`${folder}/README.md`]: [`# ${name}`, ...headings.map((one) => `## ${one}`), `npm install ${name}`, short].join(
      "\n\n",
    ),
    [`${folder}/src/index.ts`]: `export { ${short} } from "./${short}.ts";\n`,
    [`${folder}/src/${short}.ts`]: `export const ${short} = 1;\n`,
    [`${folder}/test/${short}.test.ts`]: `import { expect, it } from "vitest";\nimport { ${short} } from "../src/${short}.ts";\n\nit("is one", () => {\n  expect(${short}).toBe(1);\n});\n`,
  };
}

const architecture = `# Architecture

## 2. Packages and import direction

| package | owns | may import at run time | types only | from npm |
| --- | --- | --- | --- | --- |
| \`kernel\` | time | – | – | – |
| \`ports\` | ports | kernel | – | – |
| \`turn\` | the turn | kernel | ports | zod |
| \`apps/cli\` | wiring | everything | – | everything |
| \`tooling/*\` | rules | everything | – | everything |

## 5. Invariants

| id | rule | owner package | owner file | witness | status |
| --- | --- | --- | --- | --- | --- |
| TURN-1 | one turn at a time | turn | \`packages/turn/src/turn.ts\` | \`packages/turn/test/turn.test.ts\` | kept |
| TURN-2 | in space too | turn | – | – | planned |

## 7. Rules

- **7.1** A turn ends.
- **7.2** It ends in space too.

Rules 7.2 (space) and 7.9 (time) describe
work that has not begun.
`;

const glossary = `# Glossary

## Terms

| term | meaning | not to be confused with | owner | identifier |
| --- | --- | --- | --- | --- |
| turn | one run | a step | turn | \`turn\` |
`;

const failures = `# Failures

## Stuck

| reported | here | shown by |
| --- | --- | --- |
| it never ends | it ends | \`packages/turn/test/turn.test.ts\` › rule 7.1: a turn ends |
`;

/** A small repository in which every rule is kept. */
const healthy: Readonly<Record<string, string>> = {
  "ARCHITECTURE.md": architecture,
  "GLOSSARY.md": glossary,
  "FAILURES.md": failures,
  "package.json": json({ private: true, license: "MIT", engines: { node: ">=20.19.0" } }),
  "tsconfig.json": json({
    files: [],
    references: ["packages/kernel", "packages/ports", "packages/turn", "apps/cli"].flatMap((folder) => [
      { path: folder },
      { path: `${folder}/tsconfig.test.json` },
    ]),
  }),
  "pnpm-lock.yaml":
    "packages:\n\n  better-sqlite3@12.11.1:\n    resolution: {}\n\nsnapshots:\n\n  better-sqlite3@12.11.1:\n    dependencies: {}\n",
  "tooling/vitest-config/package.json": json({
    name: "@turnkeeper/vitest-config",
    private: true,
    exports: { ".": "./index.mjs" },
    dependencies: { vitest: "catalog:" },
  }),
  ...project("packages/kernel", "@turnkeeper/kernel"),
  "packages/kernel/src/kernel.ts": "export const kernel = Date.now();\n",
  ...project("packages/ports", "@turnkeeper/ports", { dependencies: { "@turnkeeper/kernel": "workspace:^" } }),
  "packages/ports/src/ports.ts":
    'import { kernel } from "@turnkeeper/kernel";\n\nexport interface Port {\n  readonly at: number;\n}\n\nexport const ports: number = kernel;\n',
  ...project("packages/turn", "@turnkeeper/turn", {
    dependencies: { "@turnkeeper/kernel": "workspace:^", "@turnkeeper/ports": "workspace:^" },
  }),
  "packages/turn/src/turn.ts":
    '/**\n * The turn. Owns TURN-1: one turn at a time.\n */\nimport { kernel } from "@turnkeeper/kernel";\nimport type { Port } from "@turnkeeper/ports";\n\nexport const turn = (port: Port): number => port.at + kernel;\n',
  "packages/turn/test/turn.test.ts":
    'import { expect, it } from "vitest";\nimport { turn } from "../src/turn.ts";\n\nit("TURN-1: one turn at a time", () => {\n  expect(turn({ at: 1 })).toBe(2);\n});\n\nit("TURN-1 control: without the guard two turns run", () => {\n  expect(2).toBe(2);\n});\n\nit("rule 7.1: a turn ends", () => {\n  expect(turn({ at: 1 })).toBe(2);\n});\n',
  ...project("apps/cli", "turnkeeper", { dependencies: { "@turnkeeper/turn": "workspace:^" } }),
  "apps/cli/src/cli.ts": 'import { turn } from "@turnkeeper/turn";\n\nexport const cli = turn;\n',
  "apps/cli/test/cli.test.ts":
    'import { expect, it } from "vitest";\nimport { cli } from "../src/cli.ts";\n\nit("is there", () => {\n  expect(cli).toBeDefined();\n});\n',
};

/** The healthy repository with some files written anew, or taken away by `undefined`. */
export function madeUpTree(changes: Readonly<Record<string, string | undefined>> = {}): Repository {
  const files = { ...healthy, ...changes };
  return repositoryOf(
    Object.fromEntries(Object.entries(files).filter((entry): entry is [string, string] => entry[1] !== undefined)),
  );
}

/** What a rule says about the healthy repository with these changes. */
export function findingsOf(rule: Rule, changes: Readonly<Record<string, string | undefined>> = {}): readonly string[] {
  return rule.check(madeUpTree(changes)).map(describeFinding);
}

/** The healthy text of a file with a piece replaced; the piece must be there. */
export function edited(file: string, from: string, to: string): Readonly<Record<string, string>> {
  const text = healthy[file];
  if (text === undefined || !text.includes(from)) throw new Error(`The made-up ${file} does not contain ${from}.`);
  return { [file]: text.replace(from, to) };
}
