/** Appends to the turn of `a`, checkpoints nothing, tells so and waits to be killed: node killed-store.ts PATH [KEY] */
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { grantOfTurn, says } from "../scene.ts";
import { tell } from "./process-output.ts";

const [path = "", key = "in the log"] = process.argv.slice(2);
const store = await openSqliteStore(path, { host: systemHost });
for (let index = 0; index < 40; index++)
  await store.transcript.append({ ...grantOfTurn("a", 1), entries: [says(`${key} ${index}`, "x".repeat(500))] });
tell({ ready: true });
await new Promise((resolve) => process.stdin.once("data", resolve));
