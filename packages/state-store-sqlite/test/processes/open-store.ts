/** Opens stores one after another, tells what came of it, and closes them: node open-store.ts PATH... */
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { tell } from "./process-output.ts";

for (const path of process.argv.slice(2)) {
  try {
    const store = await openSqliteStore(path, { host: systemHost });
    tell({ opened: store.file });
    await store.close();
  } catch (error) {
    if (!CodedError.is(error)) throw error;
    tell({ code: error.code, message: error.message });
  }
}
