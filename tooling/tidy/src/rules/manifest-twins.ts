import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";
import type { Project } from "../workspace.ts";

/** The fields of a shipped package.json, in the order in which oxfmt sorts them. */
const fieldOrder: readonly string[] = [
  "name",
  "version",
  "description",
  "license",
  "repository",
  "bin",
  "files",
  "type",
  "sideEffects",
  "exports",
  "publishConfig",
  "dependencies",
  "devDependencies",
  "peerDependencies",
  "optionalDependencies",
  "engines",
];

const optionalFields: ReadonlySet<string> = new Set([
  "bin",
  "dependencies",
  "peerDependencies",
  "optionalDependencies",
]);

function door(file: string): Readonly<Record<string, string>> {
  return { "@turnkeeper/source": `./src/${file}.ts`, types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` };
}

/** What an `exports` map must say about one door: source for the workspace first, then types, then the build. */
function expectedDoor(key: string): unknown {
  if (key === "./package.json") return "./package.json";
  return key === "." ? door("index") : door(`${key.slice(2)}/index`);
}

interface Expectation {
  readonly field: string;
  readonly value: unknown;
  readonly expected: unknown;
}

function manifestExpectations(repository: Repository, project: Project): readonly Expectation[] {
  const { manifest, folder } = project;
  const root = JSON.parse(repository.text("package.json")) as Record<string, unknown>;
  const expected: Readonly<Record<string, unknown>> = {
    license: root["license"],
    repository: { type: "git", url: "git+https://github.com/turnkeeper/turnkeeper.git", directory: folder },
    type: "module",
    sideEffects: false,
    engines: root["engines"],
    publishConfig: { access: "public" },
  };
  const doors = Object.entries(manifest.exports ?? {}).map(([key, value]): Expectation => ({
    field: `exports["${key}"]`,
    value,
    expected: expectedDoor(key),
  }));
  return [
    ...Object.entries(expected).map(([field, value]): Expectation => ({
      field,
      value: manifest[field],
      expected: value,
    })),
    ...doors,
  ];
}

/** One way to write a package.json, so that a difference between two of them always means something. */
export const manifestTwins: Rule = {
  title: "every shipped package.json has the same fields, in the same order, with the same shape",
  check(repository) {
    const findings: Finding[] = [];
    const projects = shippedProjects(repository);
    const [firstVersion] = projects.map(({ manifest }) => manifest["version"]);
    for (const project of projects) {
      const file = `${project.folder}/package.json`;
      const { manifest } = project;
      const fields = Object.keys(manifest);
      for (const field of fields)
        if (!fieldOrder.includes(field))
          findings.push({
            file,
            problem: `has the field "${field}", which its twins have not`,
            instead: "remove it, or give it to all of them and to this rule",
          });
      for (const field of fieldOrder)
        if (!fields.includes(field) && !optionalFields.has(field))
          findings.push({ file, problem: `lacks "${field}"`, instead: "write it as its twins do" });
      const known = fields.filter((field) => fieldOrder.includes(field));
      const ordered = fieldOrder.filter((field) => known.includes(field));
      if (known.join() !== ordered.join())
        findings.push({
          file,
          problem: `has its fields in the order ${known.join(", ")}`,
          instead: `write ${ordered.join(", ")}`,
        });
      for (const { field, value, expected } of manifestExpectations(repository, project)) {
        // Order of keys counts: Node takes the first condition of an exports map that fits.
        if (JSON.stringify(value) !== JSON.stringify(expected))
          findings.push({
            file,
            problem: `${field} is ${JSON.stringify(value)}`,
            instead: `write ${JSON.stringify(expected)}`,
          });
      }
      if (manifest["version"] !== firstVersion)
        findings.push({
          file,
          problem: `has version ${String(manifest["version"])}`,
          instead: `all packages carry one version: ${String(firstVersion)}`,
        });
      if (project.kind === "packages" && manifest.name !== `@turnkeeper/${project.key}`)
        findings.push({ file, problem: `is named ${manifest.name}`, instead: `@turnkeeper/${project.key}` });
      if (!/^[A-Z].*\.$/.test(manifest.description ?? ""))
        findings.push({
          file,
          problem: "the description is not a sentence",
          instead: "write one line that begins with a capital and ends with a full stop",
        });
      const files = Array.isArray(manifest["files"]) ? (manifest["files"] as unknown[]) : [];
      if (files[0] !== "dist" || files[1] !== "src" || files.at(-1) !== "!**/*.tsbuildinfo") {
        findings.push({
          file,
          problem: `files is ${JSON.stringify(files)}`,
          instead: 'begin with "dist", "src" and end with "!**/*.tsbuildinfo"; what else ships stands between',
        });
      }
      for (const kind of ["dependencies", "devDependencies"] as const) {
        const names = Object.keys(manifest[kind] ?? {});
        if (names.join() !== names.toSorted().join())
          findings.push({ file, problem: `${kind} are not sorted`, instead: `write ${names.toSorted().join(", ")}` });
      }
    }
    return findings;
  },
};
