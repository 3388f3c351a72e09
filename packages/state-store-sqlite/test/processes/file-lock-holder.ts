/** A process that holds a file lock until it is killed: node file-lock-holder.ts PATH; tells `held` once it does. */
import { systemHost } from "@turnkeeper/kernel";
import { fileLock } from "@turnkeeper/state-store-sqlite";
import { tell } from "./process-output.ts";

const [path = ""] = process.argv.slice(2);
// Something that is open, so that the process does not end by itself.
process.stdin.resume();
await fileLock(path, { host: systemHost }).hold(async () => {
  tell({ held: true });
  await new Promise(() => {});
});
