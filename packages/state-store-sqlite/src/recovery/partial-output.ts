/** A recovered store before it has its name. */
import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { storeError } from "../store-failure.ts";
import type { StoreError } from "../store-failure.ts";

export function partialPathOf(output: string): string {
  return `${output}.partial`;
}

/** Removes what was begun, with all that opening it laid beside it. */
export function removePartial(output: string): void {
  for (const path of companionsOf(output)) rmSync(path, { recursive: true, force: true });
  rmSync(partialPathOf(output), { force: true });
}

/** Files that belong to the partial store alone: journals, and what a store keeps ready for later. */
export function companionsOf(output: string): string[] {
  const folder = dirname(output);
  const prefix = `${basename(partialPathOf(output))}-`;
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(folder, name));
}

export function existsError(path: string): StoreError {
  return storeError(
    "STORE_UNAVAILABLE",
    `Could not recover into ${path}: there is a file of that name already. Nothing was touched; choose another name, or move it away.`,
    { path },
  );
}
