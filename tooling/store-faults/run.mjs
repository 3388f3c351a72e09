// Runs one of the three from TypeScript source, and prints what was reached and every finding:
// node tooling/store-faults/run.mjs kill [--rounds N] [--processes N] [--seed N] [--mode honest|early]
// node tooling/store-faults/run.mjs power [--states N] [--traces N] [--seed N] [--mode honest|normal]
// node tooling/store-faults/run.mjs inject [--points N] [--fault NAME] [--mode honest|lying]
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
