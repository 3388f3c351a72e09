/** Keeps so many steps of a session's turn, one after another, and tells each. Arguments: path, count. */
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { grantOfTurn, says } from "../scene.ts";
import { tell } from "./process-output.ts";

const [path = "", count = "0"] = process.argv.slice(2);
const store = await openSqliteStore(path, { host: systemHost });
for (let number = 1; number <= Number(count); number++) {
  await store.spool.keep({ ...grantOfTurn("a", 1), entries: [says(`late-${number}`)] });
  if (number === 1) tell({ began: true });
}
await store.close();
tell({ kept: Number(count) });
