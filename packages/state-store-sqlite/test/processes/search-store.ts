/** Searches a store and tells the keys of what it found: node search-store.ts PATH TEXT */
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { tell } from "./process-output.ts";

const [path = "", text = ""] = process.argv.slice(2);
const store = await openSqliteStore(path, { host: systemHost });
const { hits } = await store.transcript.search(text, { limit: 1_000 });
tell({ found: hits.map(({ entry }) => entry.key) });
await store.close();
