// Runs the exclusion checker from TypeScript source:
// node tooling/exclusion/run.mjs [--seconds N] [--processes N] [--seed N] [--mode fenced|unfenced|unconfirmed]
//   [--ground file|server] [--keep]
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const folder = path.dirname(fileURLToPath(import.meta.url));
const main = path.join(folder, "src", "main.ts");
const { status } = spawnSync(
  process.execPath,
  ["--import", "tsx", "--conditions=@turnkeeper/source", main, ...process.argv.slice(2)],
  { stdio: "inherit", cwd: folder },
);
process.exit(status ?? 1);
