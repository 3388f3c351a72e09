// Preloaded into a child: what the program loads behind its main module waits until the file that HELD_LOADING names is
// there; FILE.waits says that it does.
import { register } from "node:module";

const file = process.env.HELD_LOADING;
const hooks = `
  import { existsSync, writeFileSync } from "node:fs";
  import { setTimeout as pause } from "node:timers/promises";
  export async function load(url, context, next) {
    if (url.includes("/apps/cli/dist/") && !url.endsWith("/main.js")) {
      writeFileSync(${JSON.stringify(`${file}.waits`)}, "");
      while (!existsSync(${JSON.stringify(file)})) await pause(5);
    }
    return next(url, context);
  }`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
