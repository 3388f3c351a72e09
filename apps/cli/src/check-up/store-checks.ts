import { stat } from "node:fs/promises";
import path from "node:path";
import type { Host } from "@turnkeeper/kernel";
import type { SpoolView, StateStore } from "@turnkeeper/state-store";
import type { PostgresStore } from "@turnkeeper/state-store-postgres";
import { failureLine } from "../cli-error.ts";
import { isMissingSchema, openServerStore } from "../command-context.ts";
import type { Config } from "../config/config.ts";
import { localTime, spoolLines } from "../display/transcript-text.ts";
import { bringBack, nextStep, nextStepOfError } from "../next-step.ts";
import { oneLine } from "../one-line.ts";
import { inspectCommand, repairCommand, verifyCommand } from "../printed-command.ts";
import { shellWord } from "../shell-word.ts";
import { isFilled, remainsOfStore, remainsText, rescuedFolders, storeExists } from "../store-location.ts";
import type { StoreLocation } from "../store-location.ts";
import { note, ok, wrong } from "./check.ts";
import type { Check } from "./check.ts";
import { storeFileChecks } from "./store-files.ts";

/** About two gigabytes are looked at in ten seconds; nobody waits longer for a doctor. */
const structurePatienceMs = 10_000;

/** Whether SQLite finds the file sound, asked in a process of its own: the question cannot be interrupted otherwise. */
async function structureCheck(storePath: string, { timers }: Host): Promise<Check> {
  const name = "structure";
  const { checkStructure } = await import("@turnkeeper/state-store-sqlite");
  const controller = new AbortController();
  const cancel = timers.after(structurePatienceMs, () => controller.abort());
  try {
    const { faults, indexFaults } = await checkStructure(storePath, controller.signal);
    const [fault, ...others] = faults;
    if (fault === undefined && indexFaults.length > 0)
      return note(name, `of the search index alone: ${oneLine(indexFaults[0] ?? "")}`, repairCommand(storePath));
    if (fault === undefined) return ok(name, "SQLite finds the file sound");
    const more = others.length === 0 ? "" : `, and ${others.length} more`;
    const next = (await nextStep("STORE_CORRUPT", { path: storePath })) ?? inspectCommand(storePath);
    return wrong(name, `${oneLine(fault)}${more}`, next);
  } catch (error) {
    if (controller.signal.aborted)
      return note(
        name,
        `too large to look at all of it within ${structurePatienceMs / 1000} s`,
        verifyCommand(storePath),
      );
    return note(name, failureLine(error));
  } finally {
    cancel();
  }
}

/** What the store refused waits beside it, for as long as nobody runs a turn on those sessions. */
async function spoolCheck(
  storePath: string,
  store: Pick<StateStore, "spool">,
  shown: string = storePath,
): Promise<readonly Check[]> {
  let waiting: readonly SpoolView[];
  try {
    waiting = await store.spool.waiting();
  } catch (error) {
    const aside = `mv ${shellWord(`${storePath}-spool`)} ${shellWord(`${storePath}-spool.aside`)}`;
    return [wrong("spool", failureLine(error), { first: "see whose it is", next: aside })];
  }
  if (waiting.length === 0) return [ok("spool", "empty")];
  return spoolLines(waiting).map((line) => note("spool", line, repairCommand(shown)));
}

/** The same where the store cannot be opened: only that there is something, and where. */
async function spoolBesideCheck(storePath: string): Promise<readonly Check[]> {
  const folder = `${storePath}-spool`;
  const isThere = await stat(folder).catch(() => undefined);
  if (!isThere) return [];
  const found = `what turns had produced when the store failed is in ${folder}`;
  return [note("spool", found, "keep the folder beside the store's file: it comes back once the store works again")];
}

/**
 * What was saved of a store that was deleted or replaced under a process. It may be of long ago, so it goes to the place
 * of the store only where nothing is, and whoever types that is told of when it is.
 */
async function rescueChecks(storePath: string): Promise<readonly Check[]> {
  const isLost = (await stat(storePath).catch(() => undefined)) === undefined;
  return (await rescuedFolders(storePath)).map(({ folder, atMs }) => {
    const found = `${folder} has the store as it was at ${localTime(atMs)}, when it was deleted or replaced`;
    return note(
      "rescued",
      found,
      isLost
        ? { first: "be sure that nothing newer is to be brought back", next: bringBack(storePath, folder) }
        : inspectCommand(path.join(folder, path.basename(storePath))),
    );
  });
}

/** Whether this host hears of what others have done, or has to look for it. */
async function wakeUpCheck(store: Pick<PostgresStore, "listen">): Promise<Check> {
  using wakeUps = store.listen(() => {});
  const problem = await wakeUps.problem;
  if (problem === undefined) return ok("wake-ups", "arrive");
  return note("wake-ups", `do not arrive, so waiters look four times a second: ${oneLine(problem)}`);
}

const readOnlyText = {
  server: { found: "the server takes no writes, as a standby does", next: "point the URL at the primary" },
  user: { found: "this user may only read", next: "grant it the schema's tables and sequences" },
} as const;

/** Looks at a store on a server, opening it: nothing is made there. */
async function serverChecks(location: StoreLocation, url: string, config: Config): Promise<readonly Check[]> {
  const { path: storePath, shown, source } = location;
  try {
    const store = await openServerStore(location, url, config, { onlyLooks: true });
    try {
      const { schema, schemaVersion, readOnly } = store.server;
      const running = await store.turns.running();
      const found = `${shown} (${source}), schema ${schema} ${schemaVersion}, ${running.length} running turns`;
      return [
        readOnly === undefined
          ? ok("store", found)
          : wrong("store", `${found}; ${readOnlyText[readOnly].found}`, readOnlyText[readOnly].next),
        await wakeUpCheck(store),
        ...(await spoolCheck(storePath, store, shown)),
      ];
    } finally {
      await store.close();
    }
  } catch (error) {
    if (isMissingSchema(error))
      return [
        note("store", `none at ${shown} (${source}) yet`, "it is made when the first message is run"),
        ...(await spoolBesideCheck(storePath)),
      ];
    const next = "see the message; turnkeeper makes its schema itself where the user may";
    return [wrong("store", failureLine(error), next), ...(await spoolBesideCheck(storePath))];
  }
}

/** Looks at the store, opening it where there is one. */
export async function storeChecks(
  location: StoreLocation,
  deps: { readonly host: Host; readonly config: Config },
): Promise<readonly Check[]> {
  const { path: storePath, source } = location;
  if (location.url !== undefined) return serverChecks(location, location.url, deps.config);
  const rescued = await rescueChecks(storePath);
  const remains = await remainsOfStore(storePath);
  if (remains.length > 0) {
    const next = "bring the file back, or move what is left away to begin anew";
    return [
      wrong("store", `${storePath} (${source}): ${remainsText(remains)}`, next),
      ...(await spoolBesideCheck(storePath)),
      ...rescued,
      ...(await storeFileChecks(storePath)),
    ];
  }
  if (!(await storeExists(storePath))) {
    return [
      note("store", `none at ${storePath} (${source}) yet`, "it is made when the first message is run"),
      ...((await storeExists(path.dirname(storePath))) ? await storeFileChecks(storePath) : []),
    ];
  }
  const { openSqliteStore } = await import("@turnkeeper/state-store-sqlite");
  // The modes as they are now: opening closes the files to others.
  const around = [...rescued, ...(await storeFileChecks(storePath))];
  // Before it is opened, which may begin to write into a damaged file.
  const structure = (await isFilled(storePath)) ? await structureCheck(storePath, deps.host) : undefined;
  if (structure) around.push(structure);
  if (structure?.status === "wrong") return [...around, ...(await spoolBesideCheck(storePath))];
  try {
    const store = await openSqliteStore(
      storePath,
      { host: deps.host },
      { journalMode: deps.config.store.journal_mode },
    );
    try {
      const { journalMode, sqliteVersion, schemaVersion, notes } = store.file;
      const running = await store.turns.running();
      return [
        ok("store", `${storePath} (${source}), schema ${schemaVersion}, ${running.length} turns that have not ended`),
        ok("sqlite", sqliteVersion),
        journalMode === "wal"
          ? ok("journal", "WAL")
          : note("journal", `${journalMode}: readers and writers wait for each other`),
        ...notes.map((text) => note("store", text)),
        ...(await spoolCheck(storePath, store)),
        ...around,
      ];
    } finally {
      await store.close();
    }
  } catch (error) {
    return [
      wrong(
        "store",
        failureLine(error),
        (await nextStepOfError(error, { isDoctor: true })) ?? "see the message; the store was left as it is",
      ),
      ...(await spoolBesideCheck(storePath)),
      ...around,
    ];
  }
}
