// Runs the sweep from TypeScript source: node tooling/mutants/run.mjs [--lanes N] [PACKAGE | PACKAGE/MUTATION ...]
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const folder = path.dirname(fileURLToPath(import.meta.url));
const main = path.join(folder, "src", "main.ts");
const { status } = spawnSync(process.execPath, ["--import", "tsx", main, ...process.argv.slice(2)], {
  stdio: "inherit",
  cwd: folder,
});
process.exit(status ?? 1);
