import { realpath } from "node:fs/promises";
import { systemHost } from "@turnkeeper/kernel";
import { cliError } from "../cli-error.ts";
import { closeAll, openExistingStore, openStore, readContext } from "../command-context.ts";
import type { CommandContext, CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { counted } from "../display/count-text.ts";
import { exitCode } from "../exit-code.ts";
import { copyStore } from "../store-copy.ts";
import type { CopyProgress } from "../store-copy.ts";
import { socketFolderOf } from "../store-location.ts";
import { printJson } from "./session-command.ts";

/** Two paths may lead to one file. */
async function isSame(from: CommandContext["store"], to: CommandContext["store"]): Promise<boolean> {
  if (from.url !== undefined || to.url !== undefined) return from.shown === to.shown;
  const [left, right] = await Promise.all([from.path, to.path].map((path) => realpath(path).catch(() => path)));
  return left === right;
}

/** A line for each tenth of it. */
function progressTeller(io: CommandIo): (progress: CopyProgress) => void {
  let last = 0;
  return ({ doneCount, sessionCount }) => {
    const tenth = Math.floor((10 * doneCount) / Math.max(1, sessionCount));
    if (tenth > last) io.stderr.line(`${doneCount} of ${counted(sessionCount, "session")}`);
    last = tenth;
  };
}

/** `turnkeeper store copy FROM TO`: exit 0 when the target has everything that the source has. */
export async function copyStores(io: CommandIo, from: string, to: string, flags: CommonFlags): Promise<number> {
  const source = await readContext(io, { ...flags, store: from });
  const target = await readContext(io, { ...flags, store: to });
  if (await isSame(source.store, target.store))
    throw cliError("USAGE", `Cannot copy ${source.store.shown} onto itself; name another store.`);
  const closings: (() => Promise<unknown>)[] = [];
  try {
    const store = await openExistingStore(source);
    closings.push(() => store.close());
    const { openProcessPresence } = await import("@turnkeeper/turn-lease");
    const presence = await openProcessPresence(
      { host: systemHost },
      { socketFolder: socketFolderOf(source.store.path), spansHosts: source.store.url !== undefined },
    );
    closings.push(() => presence.close());
    const copy = await openStore(target);
    closings.push(() => copy.close());
    const report = await copyStore(
      { store, presence, shown: source.store.shown },
      { store: copy, shown: target.store.shown },
      progressTeller(io),
    );
    const { copiedCount, presentCount, entryCount } = report;
    if (flags.json) printJson(io, { copied: copiedCount, present: presentCount, entries: entryCount });
    else
      io.stdout.line(
        `${counted(copiedCount, "session")} copied with ${counted(entryCount, "line")} of transcript, ${presentCount} there already`,
      );
    return exitCode.ok;
  } finally {
    await closeAll(closings);
  }
}
