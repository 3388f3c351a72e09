import { parentPort, workerData } from "node:worker_threads";
import { decodedPage } from "./page-text.ts";
import type { PageBytes } from "./page-text.ts";
import { readableHtml } from "./readable-html.ts";

// The entry of the worker thread that reduces a page: what a stranger wrote may be made to take for ever.
const page = workerData as PageBytes;
const { text, isHtml } = decodedPage(page);
parentPort?.postMessage(isHtml ? readableHtml(text, page.url) : { text });
