import { existsSync } from "node:fs";
import path from "node:path";
import { runProcess } from "@turnkeeper/doctest/process";
import { readRepository } from "@turnkeeper/tidy/repository";
import { shippedProjects } from "@turnkeeper/tidy/workspace";
import type { Project } from "@turnkeeper/tidy/workspace";

/** A published project and what would be uploaded for it. */
export interface Tarball {
  readonly name: string;
  readonly project: Project;
  readonly file: string;
}

/** What is published: every package, and each app that has code (an app that is still empty has nothing to pack). */
export function publishedProjects(root: string): readonly Project[] {
  return shippedProjects(readRepository(root)).filter(
    ({ kind, manifest, sources }) => manifest.private !== true && (kind === "packages" || sources.length > 0),
  );
}

/** The name npm and pnpm give a tarball: the scope's slash becomes a dash. */
function tarballName({ manifest }: Project): string {
  return `${(manifest.name ?? "").replace("@", "").replace("/", "-")}-${String(manifest["version"])}.tgz`;
}

/** Packs the projects as `pnpm publish` would (workspace: and catalog: become versions), from the build in dist. */
export async function packAll(
  root: string,
  projects: readonly Project[],
  destination: string,
): Promise<readonly Tarball[]> {
  const unbuilt = projects.filter(({ folder }) => !existsSync(path.join(root, folder, "dist")));
  if (unbuilt.length > 0)
    throw new Error(`Not built: ${unbuilt.map(({ folder }) => folder).join(", ")}. Run "npm run build:all" first.`);
  // The pnpm that bootstrap.mjs installs, not whatever is on the PATH.
  const pnpm = path.join(root, "tooling", "bootstrap", "node_modules", "pnpm", "bin", "pnpm.cjs");
  const filters = projects.flatMap(({ manifest }) => ["--filter", manifest.name ?? ""]);
  const { code, stdout, stderr } = await runProcess(
    process.execPath,
    [pnpm, "--recursive", ...filters, "pack", "--pack-destination", destination],
    { cwd: root, timeoutMs: 120_000 },
  );
  if (code !== 0) throw new Error(`pnpm pack failed:\n${stdout}${stderr}`);
  return projects.map((project) => ({
    name: project.manifest.name ?? "",
    project,
    file: path.join(destination, tarballName(project)),
  }));
}
