import { parentPort, workerData } from "node:worker_threads";
import { searchFiles } from "./file-search.ts";
import type { SearchRequest } from "./file-search.ts";

// The entry of the worker thread that `search_files` starts.
await searchFiles(workerData as SearchRequest, (message) => parentPort?.postMessage(message));
