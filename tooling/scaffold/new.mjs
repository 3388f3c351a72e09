// pnpm new NAME --description "One line." [--imports kernel,state-store] [--types state-store] [--testing]
// Makes packages/NAME as a twin of the others (tooling/tidy compares them) and adds it to the root tsconfig.json.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const usage = 'usage: pnpm new NAME --description "One line." [--imports a,b] [--types a,b] [--testing]';

function fail(message) {
  console.error(`new: ${message}\n${usage}`);
  process.exit(2);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    description: { type: "string" },
    imports: { type: "string", default: "" },
    types: { type: "string", default: "" },
    testing: { type: "boolean", default: false },
  },
});
const [name] = positionals;
if (!name || !/^[a-z][a-z0-9-]*$/.test(name))
  fail(`a package name is lower case with dashes, got ${JSON.stringify(name ?? "")}`);
if (!values.description) fail("--description is missing");
const folder = path.join(root, "packages", name);
if (existsSync(folder)) fail(`packages/${name} exists already`);

const list = (text) => text.split(",").filter(Boolean);
const imports = list(values.imports);
const types = list(values.types).filter((one) => !imports.includes(one));
for (const one of [...imports, ...types])
  if (!existsSync(path.join(root, "packages", one))) fail(`there is no packages/${one}`);

const json = (value) => `${JSON.stringify(value, null, 2)}\n`;
const door = (file) => ({
  "@turnkeeper/source": `./src/${file}.ts`,
  types: `./dist/${file}.d.ts`,
  default: `./dist/${file}.js`,
});
const workspace = (names) => Object.fromEntries(names.toSorted().map((one) => [`@turnkeeper/${one}`, "workspace:^"]));
// A type-only import is in the published .d.ts, so a consumer needs that package as much as a run-time one.
const dependencies = workspace([...imports, ...types]);

const manifest = {
  name: `@turnkeeper/${name}`,
  version: "0.0.0",
  description: values.description,
  license: "MIT",
  repository: { type: "git", url: "git+https://github.com/turnkeeper/turnkeeper.git", directory: `packages/${name}` },
  files: ["dist", "src", "!**/*.tsbuildinfo"],
  type: "module",
  sideEffects: false,
  exports: {
    ".": door("index"),
    ...(values.testing ? { "./testing": door("testing/index") } : {}),
    "./package.json": "./package.json",
  },
  publishConfig: { access: "public" },
  ...(Object.keys(dependencies).length > 0 ? { dependencies } : {}),
  devDependencies: { "@turnkeeper/vitest-config": "workspace:^", vitest: "catalog:" },
  engines: { node: ">=20.19.0" },
};
const references = [...imports, ...types]
  .toSorted((left, right) => left.localeCompare(right))
  .map((one) => ({ path: `../${one}` }));

mkdirSync(path.join(folder, "src", ...(values.testing ? ["testing"] : [])), { recursive: true });
mkdirSync(path.join(folder, "test"));
const write = (file, text) => writeFileSync(path.join(folder, file), text);
write("package.json", json(manifest));
write(
  "tsconfig.json",
  json({
    extends: "../../tsconfig.base.json",
    compilerOptions: { rootDir: "src", outDir: "dist", tsBuildInfoFile: "dist/.tsbuildinfo" },
    include: ["src"],
    ...(references.length > 0 ? { references } : {}),
  }),
);
write(
  "tsconfig.test.json",
  json({
    extends: "../../tsconfig.base.json",
    compilerOptions: {
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
    },
    include: ["test", "vitest.config.ts"],
    references: [{ path: "." }],
  }),
);
write(
  "vitest.config.ts",
  `import { packageConfig } from "@turnkeeper/vitest-config";\n\nexport default packageConfig(${JSON.stringify(name)});\n`,
);
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
const bodies = { Install: `\`\`\`sh\nnpm install @turnkeeper/${name}\n\`\`\`\n`, Licence: "MIT\n" };
const sections = headings.map((heading) => `## ${heading}\n\n${bodies[heading] ?? ""}`);
write("README.md", [`# @turnkeeper/${name}\n`, `${values.description}\n`, ...sections].join("\n"));
write("src/index.ts", "export {};\n");
if (values.testing) write("src/testing/index.ts", "export {};\n");

const packages = readdirSync(path.join(root, "packages")).toSorted();
const apps = existsSync(path.join(root, "apps")) ? readdirSync(path.join(root, "apps")).toSorted() : [];
const tooling = readdirSync(path.join(root, "tooling"))
  .filter((one) => existsSync(path.join(root, "tooling", one, "tsconfig.json")))
  .toSorted();
const projects = [
  ...packages.map((one) => `packages/${one}`),
  ...apps.map((one) => `apps/${one}`),
  ...tooling.map((one) => `tooling/${one}`),
];
const solution = projects.flatMap((one) =>
  [one, `${one}/tsconfig.test.json`]
    .filter((file) => existsSync(path.join(root, file.endsWith(".json") ? file : `${file}/tsconfig.json`)))
    .map((file) => ({ path: file })),
);
writeFileSync(path.join(root, "tsconfig.json"), json({ files: [], references: solution }));
// Written JSON is not yet formatted JSON; a failure here is only seen by the lint.
spawnSync(path.join(root, "node_modules", ".bin", "oxfmt"), [folder, path.join(root, "tsconfig.json")], {
  cwd: root,
  stdio: "inherit",
});
console.log(
  `made packages/${name}; next: its face in src/index.ts, its README, a first test, its row in ARCHITECTURE.md and pnpm install`,
);
