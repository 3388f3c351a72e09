import type { StateStore } from "@turnkeeper/state-store";
import { openExistingStore } from "../command-context.ts";
import type { CommandContext, CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { counted } from "../display/count-text.ts";
import { exitCode } from "../exit-code.ts";
import { withObserved } from "../observer.ts";
import type { Observed } from "../observer.ts";
import { repairCommand } from "../printed-command.ts";
import { planRepair } from "../repair-plan.ts";
import { storeExists } from "../store-location.ts";
import { mendModes, repairStore } from "../store-repair.ts";
import type { Mended, NotMended } from "../store-repair.ts";
import { printJson, sessionIdOf, unknownSession } from "./session-command.ts";

function codeOf(left: readonly NotMended[]): number {
  if (left.length === 0) return exitCode.ok;
  return left.every(({ isHeld }) => isHeld) ? exitCode.busy : exitCode.failed;
}

/** `turnkeeper sessions repair [ID]`: 0 clean, 1 something is left, 75 a live holder is in the way; or what that would be. */
export async function repairSessions(
  io: CommandIo,
  id: string | undefined,
  flags: CommonFlags & { readonly dryRun?: boolean },
): Promise<number> {
  const isDryRun = flags.dryRun === true;
  const only = id === undefined ? undefined : await sessionIdOf(id);
  const modes: Mended[] = [];
  const open = async (context: CommandContext): Promise<StateStore> => {
    if (context.store.url === undefined) modes.push(...(await mendModes(context.store.path, { isDryRun })));
    return openExistingStore(context);
  };
  const repair = async ({ context, store, presence }: Observed): Promise<number> => {
    const { path, url, shown } = context.store;
    if (only !== undefined && !(await store.sessions.read(only))) throw unknownSession(only);
    const isFile = url === undefined;
    const isThere = !isFile || (await storeExists(path));
    const deps = { store, presence, shown, ...(isFile ? { path } : {}) };
    const mend = isDryRun ? planRepair : repairStore;
    const report = isThere ? await mend(deps, only) : { mends: [], left: [] };
    const { left } = report;
    const mends: readonly Mended[] = [...modes, ...report.mends];
    if (flags.json) printJson(io, { ...(isDryRun ? { isDryRun } : {}), mends, left });
    else {
      for (const { session = "store", detail } of mends)
        io.stdout.line(`${isDryRun ? "would mend" : "mended"}  ${session}  ${detail}`);
      for (const { session = "store", detail } of left) io.stdout.line(`left  ${session}  ${detail}`);
      io.stderr.line(
        `${counted(mends.length, "mend")}, ${left.length} left${isDryRun ? "; nothing was changed" : ""}.`,
      );
    }
    if (isDryRun && mends.length > 0) io.stderr.line(`next: ${repairCommand(shown, only)}`);
    for (const next of new Set(left.map((one) => one.next))) io.stderr.line(`next: ${next}`);
    return codeOf(left);
  };
  return withObserved(io, flags, repair, open);
}
