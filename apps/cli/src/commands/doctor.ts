import { systemHost } from "@turnkeeper/kernel";
import { storeChecks } from "../check-up/store-checks.ts";
import { configChecks, homeChecks, nodeChecks, providerChecks } from "../check-up/set-up-checks.ts";
import type { Check } from "../check-up/check.ts";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { loadConfig } from "../config/config-file.ts";
import { printable, styleOf } from "../display/style.ts";
import { exitCode } from "../exit-code.ts";
import { locateHome } from "../home.ts";
import { locateStore } from "../store-location.ts";
import { jsonLine } from "../json-line.ts";

/** `turnkeeper doctor`: what was looked at, what was found, and the next step for each finding. Makes nothing. */
export async function doctor(io: CommandIo, flags: CommonFlags): Promise<number> {
  const home = locateHome(io, flags.home);
  const loaded = await loadConfig(home.folder);
  const store = locateStore(io, { flag: flags.store, configured: loaded.config.store.url, home: home.folder });
  const checks: readonly Check[] = [
    ...nodeChecks(process.versions.node),
    ...(await homeChecks(home)),
    ...configChecks(loaded),
    ...(await providerChecks(loaded, io.environment, home.folder)),
    ...(await storeChecks(store, { host: systemHost, config: loaded.config })),
  ];
  const isWell = checks.every(({ status }) => status !== "wrong");
  if (flags.json) io.stdout.line(jsonLine({ ok: isWell, checks }));
  else {
    const style = styleOf(io.stdout.hasColour);
    const marks = { ok: style.green("ok   "), note: style.yellow("note "), wrong: style.red("wrong") };
    for (const { name, status, found, first, next } of checks) {
      io.stdout.line(`${marks[status]} ${name}: ${printable(found)}`);
      if (first !== undefined) io.stdout.line(`      first: ${first}`);
      if (next !== undefined) io.stdout.line(`      next: ${next}`);
    }
  }
  return isWell ? exitCode.ok : exitCode.failed;
}
