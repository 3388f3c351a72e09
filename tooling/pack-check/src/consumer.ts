import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { examplesIn } from "@turnkeeper/doctest/example";
import { runProcess } from "@turnkeeper/doctest/process";
import type { ProcessOutcome } from "@turnkeeper/doctest/process";
import ts from "typescript";
import type { Tarball } from "./tarballs.ts";

/** A stranger's folder: empty but for one package of ours, installed from its tarball by npm. */
export interface Consumer {
  readonly folder: string;
  /** The installed package. */
  readonly packageFolder: string;
}

// What an enclosing npm run says about itself must not steer the npm that is started here.
const npmOwn = /^npm_(?!config_(registry|cache|userconfig|nodedir)$)/i;

function strangerEnv(): NodeJS.ProcessEnv {
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !npmOwn.test(name))), NO_COLOR: "1" };
}

/**
 * Install scripts are off: compiling SQLite takes a minute, and the workspace has compiled the same version already. Its
 * addon is copied to where the script would have put it.
 */
function copyCompiledAddon(root: string, folder: string): void {
  const target = path.join(folder, "node_modules", "better-sqlite3");
  if (!existsSync(target)) return;
  const source = realpathSync(path.join(root, "packages", "state-store-sqlite", "node_modules", "better-sqlite3"));
  const addon = path.join("build", "Release", "better_sqlite3.node");
  mkdirSync(path.join(target, path.dirname(addon)), { recursive: true });
  cpSync(path.join(source, addon), path.join(target, addon));
}

/** Installs one tarball alone; its siblings come from their tarballs too, everything else from npm's cache or registry. */
export async function installAlone(
  root: string,
  { name, file }: Tarball,
  all: readonly Tarball[],
  folder: string,
): Promise<Consumer> {
  mkdirSync(folder, { recursive: true });
  const overrides = Object.fromEntries(
    all.filter((one) => one.name !== name).map((one) => [one.name, `file:${one.file}`]),
  );
  writeFileSync(
    path.join(folder, "package.json"),
    JSON.stringify(
      {
        name: "stranger",
        version: "1.0.0",
        private: true,
        type: "module",
        dependencies: { [name]: `file:${file}` },
        overrides,
      },
      null,
      2,
    ),
  );
  const args = [
    "install",
    "--ignore-scripts",
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
    "--no-package-lock",
    "--loglevel=error",
  ];
  const { code, stdout, stderr } = await runProcess("npm", args, {
    cwd: folder,
    env: strangerEnv(),
    timeoutMs: 180_000,
  });
  if (code !== 0) throw new Error(`npm could not install ${name} alone:\n${stdout}${stderr}`);
  copyCompiledAddon(root, folder);
  return { folder, packageFolder: path.join(folder, "node_modules", name) };
}

/** Runs Node in the stranger's folder, without the workspace's source condition: what runs is dist. */
export async function runInside({ folder }: Consumer, args: readonly string[]): Promise<ProcessOutcome> {
  return runProcess(process.execPath, args, {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, NO_COLOR: "1" },
    timeoutMs: 60_000,
  });
}

/** The examples of the README that was packed, as JavaScript in the stranger's folder; none where the page has none. */
export function writeExamples({ folder, packageFolder }: Consumer): readonly string[] {
  const page = "README.md";
  const { examples } = examplesIn(`package/${page}`, readFileSync(path.join(packageFolder, page), "utf8"));
  const compilerOptions: ts.CompilerOptions = {
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2022,
    moduleDetection: ts.ModuleDetectionKind.Force,
    verbatimModuleSyntax: true,
  };
  return examples
    .filter(({ mode }) => mode === "run")
    .map(({ text, line }) => {
      const file = path.join(folder, `example-${line}.js`);
      writeFileSync(file, ts.transpileModule(text, { compilerOptions }).outputText);
      return file;
    });
}

/** Every file below a folder, relative to it. */
export function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((item) => item.isFile())
    .map((item) => path.relative(folder, path.join(item.parentPath, item.name)))
    .toSorted();
}
