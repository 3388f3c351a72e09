// Preloaded into a child: writes the URL of every module that is loaded to the file that MODULE_LOG names.
import { appendFileSync } from "node:fs";
import { Module, register } from "node:module";

const log = process.env.MODULE_LOG;
const hooks = `
  import { appendFileSync } from "node:fs";
  export async function load(url, context, next) {
    appendFileSync(${JSON.stringify(log)}, url + "\\n");
    return next(url, context);
  }`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const loadCommonJs = Module._load;
Module._load = function load(request, ...rest) {
  const file = Module._resolveFilename(request, ...rest);
  if (file.startsWith("/")) appendFileSync(log, `${file}\n`);
  return loadCommonJs.call(this, request, ...rest);
};
