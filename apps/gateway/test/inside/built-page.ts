import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const builder = fileURLToPath(new URL("../../../../tooling/bootstrap/console-page.mjs", import.meta.url));

/** What ships is what is tested: the console is built where a source of it is newer, which the suite has done before. */
export function ensurePage(): void {
  const { status, stderr } = spawnSync(process.execPath, [builder], { encoding: "utf8", timeout: 120_000 });
  if (status !== 0) throw new Error(`The console could not be built: ${stderr}`);
}
