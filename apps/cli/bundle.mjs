// Bundles the program and what it is made of into dist: node apps/cli/bundle.mjs
// A command that loads five hundred modules one by one spends twice as long on that as on its work, and whoever installs
// the program would install a hundred packages. What stays outside is what package.json names as a dependency: native
// code, and the HTTP server, which looks for its own files.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureConsolePage, pageFolder } from "../../tooling/bootstrap/console-page.mjs";

const folder = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(folder, "../..");
const dist = path.join(folder, "dist");
const packages = path.join(root, "packages");

/** Modules that are started by their file's name, from beside the module that starts them. */
const startedByName = {
  "page-worker": path.join(packages, "tools/src/page-worker.ts"),
  "search-worker": path.join(packages, "tools/src/search-worker.ts"),
  "structure-process": path.join(packages, "state-store-sqlite/src/structure-process.ts"),
  "recovery/recovery-process": path.join(packages, "state-store-sqlite/src/recovery/recovery-process.ts"),
};

/** What a package from elsewhere asks to be kept beside its code. */
function noticeOf(packageFolder) {
  const { name, version, license } = JSON.parse(readFileSync(path.join(packageFolder, "package.json"), "utf8"));
  const file = readdirSync(packageFolder).find((one) => /^licen[cs]e/i.test(one));
  const text = file === undefined ? "" : readFileSync(path.join(packageFolder, file), "utf8").trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
}

function packageFolderOf(moduleFile) {
  const [, found] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(moduleFile) ?? [];
  return found;
}

/** As with the modules: what is of an older page goes once the new one stands. */
function copyPage(destination) {
  cpSync(pageFolder, destination, { recursive: true });
  for (const file of readdirSync(destination, { recursive: true }))
    if (!existsSync(path.join(pageFolder, file)))
      rmSync(path.join(destination, file), { recursive: true, force: true });
}

export async function bundle() {
  const { rolldown } = await import("rolldown");
  const { dependencies } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const names = Object.keys(dependencies);
  const build = await rolldown({
    // What the names of modules in the output are relative to.
    cwd: root,
    input: { main: path.join(folder, "src/main.ts"), ...startedByName },
    platform: "node",
    external: (id) => names.some((name) => id === name || id.startsWith(`${name}/`)),
    resolve: { conditionNames: ["@turnkeeper/source", "node", "import", "default"] },
    // As tsc does: `using` is newer than the oldest Node we run on.
    transform: { target: "es2022" },
    onLog: (level, log, tell) => tell(level === "warn" ? "error" : level, log),
  });
  const { output } = await build.write({
    dir: dist,
    format: "esm",
    chunkFileNames: "[name]-[hash].js",
  });
  await build.close();
  // After writing, and by name: a bundle that is made twice at once names its files alike.
  const written = new Set(output.map(({ fileName }) => path.normalize(fileName)));
  for (const file of readdirSync(dist, { recursive: true }))
    if (/\.js(\.map)?$/.test(file) && !written.has(file)) rmSync(path.join(dist, file));
  const outside = new Set(
    output.flatMap((one) => (one.type === "chunk" ? [...one.imports, ...one.dynamicImports] : [])),
  );
  for (const name of names)
    if (![...outside].some((id) => id === name || id.startsWith(`${name}/`)))
      throw new Error(`apps/cli/package.json: nothing in the bundle needs ${name}; remove it from dependencies`);
  const modules = output.flatMap((one) => (one.type === "chunk" ? one.moduleIds : []));
  const foreign = [...new Set(modules.map(packageFolderOf).filter((one) => one !== undefined))].toSorted();
  writeFileSync(path.join(dist, "third-party.txt"), foreign.map(noticeOf).join(`\n${"-".repeat(80)}\n\n`));
  cpSync(path.join(packages, "state-store-sqlite/migrations"), path.join(folder, "migrations"), { recursive: true });
  const ofPostgres = "postgres-migrations";
  cpSync(path.join(packages, "state-store-postgres", ofPostgres), path.join(folder, ofPostgres), { recursive: true });
  await ensureConsolePage();
  copyPage(path.join(folder, "page"));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await bundle();
