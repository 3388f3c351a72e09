#!/usr/bin/env node
import { exitCode } from "./exit-code.ts";
import { exhaustionText, isExhaustion } from "./exhaustion.ts";
import { HeldSignals } from "./held-signals.ts";
import { versionText } from "./version.ts";

const [first, ...others] = process.argv.slice(2);
if ((first === "--version" || first === "-V") && others.length === 0) {
  // Asked for by scripts, often: nothing else is loaded for it.
  console.log(versionText());
} else {
  const held = new HeldSignals(process);
  void import("./cli-process.ts").then(
    ({ runProcess }) => runProcess(process, held),
    (error: unknown) => {
      if (!isExhaustion(error)) throw error;
      console.error(`turnkeeper: ${exhaustionText}`);
      process.exitCode = exitCode.storeUnusable;
    },
  );
}
