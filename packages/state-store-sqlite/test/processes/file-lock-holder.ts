/** A process that holds a file lock until it is killed: node file-lock-holder.ts PATH; tells `held` once it does. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { systemHost } from "@turnkeeper/kernel";
import { fileLock } from "@turnkeeper/state-store-sqlite";
import { tell } from "./process-output.ts";

const [path = ""] = process.argv.slice(2);
// What nobody can reach any more is collected before it is told: a lock must not go with it.
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
// Something that is open, so that the process does not end by itself.
process.stdin.resume();
await fileLock(path, { host: systemHost }).hold(async () => {
  setImmediate(() => {
    collect();
    setImmediate(() => tell({ held: true }));
  });
  await new Promise(() => {});
});
