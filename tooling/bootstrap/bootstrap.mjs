// Sets up a clean checkout that has only Node and npm: the pinned pnpm, a frozen install, then a command.
//   node tooling/bootstrap/bootstrap.mjs [-- command args...]
// Set-up talks on stderr only, so that stdout belongs to the command.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const pnpmDir = path.join(root, "tooling", "bootstrap");
const stampFile = path.join(root, "node_modules", ".bootstrap-stamp");

// npm's own npm_* variables would be read as settings by pnpm and by nested npm runs.
const npmOwn =
  /^npm_(package|lifecycle|command|execpath|node_execpath|config_(prefix|local_prefix|globalconfig|global_prefix|noproxy|npm_version|yes|allow_scripts))/i;

/** The environment in which the workspace's own binaries run. */
export function workspaceEnv() {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !npmOwn.test(name)));
  const bins = [path.join(root, "node_modules", ".bin"), path.join(pnpmDir, "node_modules", ".bin")];
  env.PATH = [...bins, process.env.PATH].join(path.delimiter);
  env.TURBO_TELEMETRY_DISABLED ??= "1";
  env.DO_NOT_TRACK ??= "1";
  // turbo's hashes do not know which Node ran the task.
  env.TURNKEEPER_NODE = `${process.version}-${process.versions.modules}-${process.arch}`;
  // Native addons build against the headers beside this Node: no download.
  const prefix = path.resolve(path.dirname(process.execPath), "..");
  if (existsSync(path.join(prefix, "include", "node", "node.h"))) env.npm_config_nodedir = prefix;
  return env;
}

/** Runs a command in the workspace; exits with its code when it fails. `quiet` sends its stdout to stderr. */
export function run(command, args, { cwd = root, quiet = false } = {}) {
  const stdio = ["inherit", quiet ? process.stderr : "inherit", "inherit"];
  const result = spawnSync(command, args, { cwd, env: workspaceEnv(), stdio, shell: process.platform === "win32" });
  if (result.error) {
    console.error(`bootstrap: cannot run ${command}: ${result.error.message}`);
    process.exit(1);
  }
  if (result.status !== 0) process.exit(result.status ?? 1);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}

/** Installs pnpm and the workspace where they are missing or stale; a no-op of a few milliseconds otherwise. */
export function setUp() {
  const want = readJson(path.join(root, "package.json")).packageManager.split("@")[1].split("+")[0];
  const installed = path.join(pnpmDir, "node_modules", "pnpm", "package.json");
  if (!existsSync(installed) || readJson(installed).version !== want) {
    console.error(`bootstrap: installing pnpm ${want}`);
    run("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], {
      cwd: pnpmDir,
      quiet: true,
    });
  }
  const hash = createHash("sha256");
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json"])
    hash.update(readFileSync(path.join(root, file)));
  hash.update(`${process.version} ${process.versions.modules} ${process.platform} ${process.arch}`);
  const stamp = hash.digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  console.error("bootstrap: pnpm install --frozen-lockfile (the first time compiles SQLite: about a minute)");
  run("pnpm", ["install", "--frozen-lockfile", "--prefer-offline", "--reporter=append-only", "--loglevel=warn"], {
    quiet: true,
  });
  mkdirSync(path.dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, stamp);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  setUp();
  const dash = process.argv.indexOf("--");
  if (dash !== -1) run(process.argv[dash + 1], process.argv.slice(dash + 2));
}
