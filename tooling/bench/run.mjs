// npm run bench [-- NAME...] [--quick] [--json FILE] [--install-peers]: builds, then measures.
// What is measured is the build, as users get it: a loader that compiles on the fly would be measured with it.
import { spawnSync } from "node:child_process";
import { existsSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const folder = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(folder, "../..");
const peers = path.join(folder, "peers");

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { stdio: ["inherit", 2, 2], cwd });
  if (error) console.error(`bench: cannot run ${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

/** The peers' own lockfile, installed outside of the workspace, so that nobody else waits for them. */
function installPeers() {
  console.error("bench: installing the peers");
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], peers);
  // The peers run on the workspace's compiled SQLite: nothing to compile, and the same engine under everybody.
  const copy = path.join(peers, "node_modules", "better-sqlite3");
  rmSync(copy, { recursive: true });
  symlinkSync(realpathSync(path.join(folder, "node_modules", "better-sqlite3")), copy);
}

const given = process.argv.slice(2);
const args = given.filter((one) => one !== "--install-peers");
if (args.length < given.length) installPeers();
else if (!existsSync(path.join(peers, "node_modules")))
  console.error("bench: the peers are not installed and will be skipped; --install-peers installs them.");
run(process.execPath, [path.join(root, "tooling/bootstrap/build.mjs"), folder], root);
const { status } = spawnSync(process.execPath, ["--expose-gc", path.join(folder, "dist", "main.js"), ...args], {
  stdio: "inherit",
});
process.exit(status ?? 1);
