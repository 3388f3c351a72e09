// Removes from every dist what no source stands for any more: tsc writes outputs and never takes them back, so after a
// rename the old module would stay importable here, and be published.
import { existsSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const output = /\.(d\.ts|js)(\.map)?$/;

export function sweepDist() {
  for (const kind of ["packages", "apps"]) {
    for (const name of readdirSync(path.join(root, kind))) {
      const dist = path.join(root, kind, name, "dist");
      if (!existsSync(dist)) continue;
      for (const item of readdirSync(dist, { recursive: true, withFileTypes: true })) {
        const file = path.join(item.parentPath, item.name);
        // What a project bundles is cleared by its bundle.
        if (!item.name.includes(".d.ts") && existsSync(path.join(root, kind, name, "bundle.mjs"))) continue;
        const source = path.join(root, kind, name, "src", path.relative(dist, file).replace(output, ".ts"));
        if (item.isFile() && output.test(item.name) && !existsSync(source)) rmSync(file);
      }
    }
  }
}
