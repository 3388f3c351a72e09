// Runs the simulation from TypeScript source: node tooling/sim/run.mjs [--seeds N] [--first SEED] [--steps N]
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const main = path.join(path.dirname(fileURLToPath(import.meta.url)), "src", "main.ts");
const { status } = spawnSync(
  process.execPath,
  ["--import", "tsx", "--conditions=@turnkeeper/source", main, ...process.argv.slice(2)],
  {
    stdio: "inherit",
    cwd: path.dirname(fileURLToPath(import.meta.url)),
  },
);
process.exit(status ?? 1);
