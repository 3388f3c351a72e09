import type { Repository } from "./repository.ts";

export type ProjectKind = "packages" | "apps" | "tooling";

export interface Manifest {
  readonly name?: string;
  readonly description?: string;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** One workspace project: a folder with a package.json below packages, apps or tooling. */
export interface Project {
  readonly kind: ProjectKind;
  readonly folder: string;
  /** How ARCHITECTURE.md names it: `kernel`, `apps/cli`, `tooling/tidy`. */
  readonly key: string;
  readonly manifest: Manifest;
  /** TypeScript modules below `src/`. */
  readonly sources: readonly string[];
  /** TypeScript modules below `test/`. */
  readonly tests: readonly string[];
  /** A program that `bundle.mjs` makes: what goes into it is a development dependency, what stays outside is shipped. */
  readonly isBundled: boolean;
}

const manifestPath = /^((packages|apps|tooling)\/[^/]+)\/package\.json$/;

/** Every project of the workspace, in order of its folder. */
export function projectsOf(repository: Repository): readonly Project[] {
  return repository.paths.flatMap((file): Project[] => {
    const match = manifestPath.exec(file);
    const folder = match?.[1];
    const kind = match?.[2] as ProjectKind | undefined;
    if (folder === undefined || kind === undefined) return [];
    const modules = repository.paths.filter((one) => one.startsWith(`${folder}/`) && one.endsWith(".ts"));
    return [
      {
        kind,
        folder,
        key: kind === "packages" ? folder.slice("packages/".length) : folder,
        manifest: JSON.parse(repository.text(file)) as Manifest,
        sources: modules.filter((one) => one.startsWith(`${folder}/src/`)),
        tests: modules.filter((one) => one.startsWith(`${folder}/test/`)),
        isBundled: repository.has(`${folder}/bundle.mjs`),
      },
    ];
  });
}

/** Packages and apps: what is published, and what most rules are about. */
export function shippedProjects(repository: Repository): readonly Project[] {
  return projectsOf(repository).filter(({ kind }) => kind !== "tooling");
}

/** The package that a bare specifier names, and the door it asks for: `@a/b/testing` is `@a/b` and `./testing`. */
export function splitSpecifier(specifier: string): { readonly packageName: string; readonly door: string } {
  const parts = specifier.split("/");
  const count = specifier.startsWith("@") ? 2 : 1;
  const rest = parts.slice(count).join("/");
  return { packageName: parts.slice(0, count).join("/"), door: rest === "" ? "." : `./${rest}` };
}

export function isRelative(specifier: string): boolean {
  return specifier.startsWith(".");
}
