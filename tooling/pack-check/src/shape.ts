import { readFileSync } from "node:fs";
import path from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import type { Project } from "@turnkeeper/tidy/workspace";
import { filesBelow } from "./consumer.ts";
import type { Consumer } from "./consumer.ts";
import type { Tarball } from "./tarballs.ts";

/** What publint finds wrong with a tarball, suggestions included. */
export async function lintTarball({ file, project }: Tarball): Promise<readonly string[]> {
  const content = readFileSync(file);
  const tarball = content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
  return messages.map(
    (message) => `${project.folder}: ${formatMessage(message, pkg, { color: false }) ?? message.code}`,
  );
}

// Ours is ESM for Node 20 and newer: how CommonJS and the resolution before `exports` see it is no concern.
const ignoredResolutions: ReadonlySet<string> = new Set(["node10", "node16-cjs"]);

/** What "are the types wrong" finds: how TypeScript resolves each door, for users of ESM. */
export async function checkTypes({ file }: Tarball): Promise<readonly string[]> {
  const analysis = await checkPackage(createPackageFromTarballData(readFileSync(file)));
  if (!analysis.types) return ["has no types"];
  const problems = analysis.problems.filter(
    (problem) => !("resolutionKind" in problem && ignoredResolutions.has(problem.resolutionKind)),
  );
  return problems.map((problem) => JSON.stringify(problem));
}

/** What is wrong with the files of an installed package: leftovers of a build, tests, protocols only the workspace knows. */
export function checkContents(
  { packageFolder }: Consumer,
  { isBundled }: Pick<Project, "isBundled">,
): readonly string[] {
  const findings: string[] = [];
  const files = filesBelow(packageFolder).filter((file) => !file.startsWith("node_modules/"));
  const present = new Set(files);
  // What was bundled keeps the notices of those who wrote it.
  const notices = isBundled ? ["dist/third-party.txt"] : [];
  for (const wanted of ["LICENSE", "README.md", "package.json", ...notices])
    if (!present.has(wanted)) findings.push(`lacks ${wanted}`);
  for (const file of files) {
    if (
      !isBundled &&
      /^dist\/.*\.js$/.test(file) &&
      !present.has(file.replace(/^dist\//, "src/").replace(/\.js$/, ".ts"))
    )
      findings.push(`${file} has no source: a leftover of an earlier build, remove dist and build again`);
    if (/\.tsbuildinfo$|(^|\/)test\//.test(file)) findings.push(`${file} should not be published`);
  }
  const manifest = readFileSync(path.join(packageFolder, "package.json"), "utf8");
  for (const protocol of ["workspace:", "catalog:"])
    if (manifest.includes(`"${protocol}`)) findings.push(`package.json still says ${protocol}`);
  return findings;
}
