#!/usr/bin/env node
import { versionText } from "./version.ts";

const [first, ...others] = process.argv.slice(2);
if ((first === "--version" || first === "-V") && others.length === 0) {
  // Asked for by scripts, often: nothing else is loaded for it.
  console.log(versionText());
} else {
  void import("./cli-process.ts").then(({ runProcess }) => runProcess(process));
}
