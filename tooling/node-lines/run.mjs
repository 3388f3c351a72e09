// npm run test:nodes [-- LINE...] [-- vitest arguments]: the suite on the newer Node lines.
//   npm run test:nodes                         every line of nodes/package.json
//   npm run test:nodes -- 22 -- --project kernel
// Each line gets a clean copy of the checkout in the temporary folder: a native addon fits one Node only, so the lines
// cannot share one node_modules. The copies stay until the next run, to be looked at.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const nodesFolder = path.join(root, "tooling", "node-lines", "nodes");
const checkoutMark = createHash("sha256").update(root).digest("hex").slice(0, 8);
const copiesFolder = path.join(tmpdir(), `turnkeeper-node-lines-${checkoutMark}`);

function fail(message) {
  console.error(`test:nodes: ${message}`);
  process.exit(2);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}

/** Runs a command with its output shown; whether it succeeded. */
function succeeds(command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", ...options });
  if (error) console.error(`test:nodes: cannot run ${command}: ${error.message}`);
  return status === 0;
}

/** The Node binaries by line: { line: "22", version, folder }. Installed once; about 200 MB each. */
function installNodes() {
  const lines = Object.entries(readJson(path.join(nodesFolder, "package.json")).dependencies).map(([name, spec]) => ({
    line: name.replace("node-", ""),
    version: spec.split("@").at(-1),
    folder: path.join(nodesFolder, "node_modules", name),
  }));
  const isInstalled = ({ folder, version }) =>
    existsSync(path.join(folder, "bin", "node")) && readJson(path.join(folder, "package.json")).version === version;
  if (!lines.every(isInstalled)) {
    console.error(`test:nodes: installing Node ${lines.map(({ version }) => version).join(" and ")}`);
    if (!succeeds("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: nodesFolder }))
      fail("npm could not install the Node binaries");
  }
  return lines;
}

// Since 24.19.0 the headers make every wrapped object remove a hook when it is collected, and a collection outside of any
// script aborts the process there (nodejs/node#65446). It is the header an addon was compiled against that counts, not
// the Node it runs in: published binaries are not touched by it, but here the addon is compiled.
const brokenHook = "RemoveEnvironmentCleanupHook";

/** Gives every line the header as the lines before the fault have it. */
function mendHeaders(lines) {
  const header = ({ folder }) => path.join(folder, "include", "node", "node_object_wrap.h");
  const isBroken = (one) => readFileSync(header(one)).includes(brokenHook);
  const sound = lines.find((one) => !isBroken(one));
  if (!sound) fail("no Node line has a sound node_object_wrap.h; see nodejs/node#65446");
  for (const one of lines.filter(isBroken)) copyFileSync(header(sound), header(one));
}

/** Whether the compiled addon of a copy came out of a cache that was filled with the broken header. */
function hasBrokenAddon(copy) {
  const addon = realpathSync(path.join(copy, "packages", "state-store-sqlite", "node_modules", "better-sqlite3"));
  return readFileSync(path.join(addon, "build", "Release", "better_sqlite3.node")).includes(brokenHook);
}

/** A copy of what git tracks or would track, uncommitted changes included, and nothing that was built or installed. */
function copyCheckout(target) {
  const { stdout, status } = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) fail("git could not list the files of the checkout");
  rmSync(target, { recursive: true, force: true });
  for (const file of stdout.split("\0").filter((one) => one !== "" && existsSync(path.join(root, one)))) {
    mkdirSync(path.join(target, path.dirname(file)), { recursive: true });
    cpSync(path.join(root, file), path.join(target, file));
  }
}

/** Installs, builds and tests a copy under one Node. */
function runLine({ line, version, folder }, vitestArgs) {
  const copy = path.join(copiesFolder, line);
  console.error(`\ntest:nodes: Node ${version} in ${copy}`);
  copyCheckout(copy);
  const node = path.join(folder, "bin", "node");
  // First on the PATH, so that npm, pnpm, node-gyp and whatever the tests start run under this Node too.
  const env = { ...process.env, PATH: [path.dirname(node), process.env.PATH].join(path.delimiter) };
  const bootstrap = (...command) =>
    succeeds(node, [path.join(copy, "tooling/bootstrap/bootstrap.mjs"), ...command], { cwd: copy, env });
  if (!bootstrap()) return false;
  if (hasBrokenAddon(copy) && !bootstrap("--", "pnpm", "--recursive", "rebuild", "better-sqlite3")) return false;
  return (
    bootstrap("--", node, "tooling/bootstrap/build.mjs") &&
    bootstrap("--", node, "node_modules/vitest/vitest.mjs", "run", ...vitestArgs)
  );
}

if (process.platform !== "linux" || process.arch !== "x64")
  fail("the binaries are for Linux on x64; elsewhere, run npm test under each Node by hand");
const given = process.argv.slice(2);
const dash = given.indexOf("--");
const wanted = dash === -1 ? given : given.slice(0, dash);
const vitestArgs = dash === -1 ? [] : given.slice(dash + 1);
const lines = installNodes();
mendHeaders(lines);
const unknown = wanted.filter((one) => !lines.some(({ line }) => line === one));
if (unknown.length > 0)
  fail(`no Node line ${unknown.join(", ")}; there are ${lines.map(({ line }) => line).join(", ")}`);

const outcomes = lines
  .filter(({ line }) => wanted.length === 0 || wanted.includes(line))
  .map((one) => ({ version: one.version, passed: runLine(one, vitestArgs) }));
for (const { version, passed } of outcomes) console.log(`node ${version}: ${passed ? "passed" : "failed"}`);
process.exit(outcomes.every(({ passed }) => passed) ? 0 : 1);
