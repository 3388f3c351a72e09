/**
 * What to type after a store has refused: one command for each code, with the store's real path, as a shell takes it.
 * No command here touches a damaged file but by reading it.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import type { TurnFinished } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { doctorCommand, inspectCommand, repairCommand, topCommand, verifyCommand } from "./printed-command.ts";
import type { CommandPlace } from "./printed-command.ts";
import { shellWord } from "./shell-word.ts";

/** What to do about a finding. `next` is typed as it stands; `first` is what has to be done by hand before. */
export interface NextStep {
  readonly first?: string;
  readonly next: string;
}

/** One thing a line, so that the line of the command is all command. */
export function stepLines({ first, next }: NextStep): readonly string[] {
  return [...(first === undefined ? [] : [`first: ${first}`]), `next: ${next}`];
}

/** The first name beside the store that nothing has. */
export function freeFolder(storePath: string, what: string): string {
  let folder = `${storePath}-${what}`;
  for (let number = 2; existsSync(folder); number++) folder = `${storePath}-${what}-${number}`;
  return folder;
}

/**
 * The folder into which this process saved the store when it was deleted or replaced, as the error tells. Another that
 * lies beside the store is of another day: what stands there now may be newer.
 */
function rescuedOf(error: unknown): string | undefined {
  for (let one = error; CodedError.is(one); one = one.cause) {
    const { rescued } = one.context;
    if (typeof rescued === "string") return rescued;
  }
  return undefined;
}

/** The same of a store that a turn met sealed: it refuses with what sealed it. */
async function rescuedBy(store: StateStore): Promise<string | undefined> {
  try {
    await store.sessions.list({ limit: 1 });
  } catch (error) {
    return rescuedOf(error);
  }
  return undefined;
}

/** Brings a rescued store back to its place; what stands there now is laid aside, with its log. */
export function bringBack(storePath: string, rescued: string): string {
  const files = ["", "-wal", "-shm"].map((suffix) => `${storePath}${suffix}`).filter((file) => existsSync(file));
  const folder = shellWord(freeFolder(storePath, "replaced"));
  const aside = files.length === 0 ? "" : `mkdir ${folder} && mv ${files.map(shellWord).join(" ")} ${folder} && `;
  const name = path.join(rescued, path.basename(storePath));
  const [from, to] = [`${shellWord(name)} ${shellWord(`${name}-wal`)}`, shellWord(path.dirname(storePath))];
  return `${aside}mv ${from} ${to} && rmdir ${shellWord(rescued)} && ${verifyCommand(storePath)}`;
}

/** A refusal as a step needs it. */
interface Refusal {
  readonly place: CommandPlace;
  /** Where this process saved the store. */
  readonly rescued?: string | undefined;
}

function afterReplacement({ place: { path: storePath }, rescued }: Refusal): string {
  return rescued === undefined ? layLogAside(storePath) : bringBack(storePath, rescued);
}

function afterDeletion({ place, rescued }: Refusal): string {
  const { path: storePath } = place;
  if (rescued !== undefined) return bringBack(storePath, rescued);
  // A log that was put back makes the store whole.
  return existsSync(storePath) && existsSync(`${storePath}-wal`) ? verifyCommand(storePath) : doctorCommand(place);
}

/** What SQLite would replay onto the file that is there now, laid aside together. */
function layLogAside(storePath: string): string {
  const files = [`${storePath}-wal`, `${storePath}-shm`].filter((file) => existsSync(file));
  if (files.length === 0) return verifyCommand(storePath);
  const folder = shellWord(freeFolder(storePath, "replaced"));
  return `mkdir ${folder} && mv ${files.map(shellWord).join(" ")} ${folder} && ${verifyCommand(storePath)}`;
}

interface Step {
  readonly command: (refusal: Refusal) => string;
  /** Whoever has the store open must end first. */
  readonly needsNobody?: boolean;
}

const inspect: Step = { command: ({ place }) => inspectCommand(place.path), needsNobody: true };
const askDoctor: Step = { command: ({ place }) => doctorCommand(place) };
const seeWhoRuns: Step = { command: ({ place }) => topCommand(place.path) };

const steps: Readonly<Record<string, Step>> = {
  STORE_CORRUPT: inspect,
  STORE_TRUNCATED: inspect,
  STORE_REPLACED: { command: afterReplacement, needsNobody: true },
  STORE_DELETED: { command: afterDeletion, needsNobody: true },
  STORE_UNLOCKED: { command: ({ place }) => verifyCommand(place.path) },
  STORE_NEWER: { command: () => "npm install --global turnkeeper" },
  STORE_READONLY: askDoctor,
  STORE_UNAVAILABLE: askDoctor,
  STORE_MISSING: askDoctor,
  STORE_FULL: askDoctor,
  STORE_IO: askDoctor,
  STORE_DUPLICATE: askDoctor,
  STORE_BUSY: seeWhoRuns,
  STORE_HELD: seeWhoRuns,
};

/** The codes that have a next step; a test runs the command of each. */
export const steppedCodes: readonly string[] = Object.keys(steps);

/** Who has the store's files open, but this process. Looks without opening them. */
async function usersOf(storePath: string): Promise<readonly string[]> {
  const { processesWith } = await import("@turnkeeper/state-store-sqlite");
  const files = [storePath, `${storePath}-wal`, `${storePath}-shm`];
  return (processesWith(files) ?? []).map(({ name }) => name);
}

/** What to do next about a store that refused with this code; nothing where no command helps. */
export async function nextStep(code: string, place: CommandPlace, rescued?: string): Promise<NextStep | undefined> {
  const step = steps[code];
  if (!step) return undefined;
  const users = step.needsNobody ? await usersOf(place.path) : [];
  const next = step.command({ place, rescued });
  return users.length === 0 ? { next } : { first: `end ${users.join(" and ")}`, next };
}

/** Says it of a turn that the store ended. */
export async function tellNextStep(
  say: (line: string) => void,
  { outcome, reason = "" }: Pick<TurnFinished, "outcome" | "reason">,
  { place, store }: { readonly place: CommandPlace; readonly store: StateStore },
): Promise<void> {
  if (outcome !== "failed") return;
  const isGone = reason === "STORE_DELETED" || reason === "STORE_REPLACED";
  const step = await nextStep(reason, place, isGone ? await rescuedBy(store) : undefined);
  if (step) for (const line of stepLines(step)) say(line);
}

/** The same for whatever a command failed with. `home`: as the command line named it. */
export async function nextStepOfError(
  error: unknown,
  { home, isDoctor = false }: { readonly home?: string | undefined; readonly isDoctor?: boolean } = {},
): Promise<NextStep | undefined> {
  if (!CodedError.is(error)) return undefined;
  const { path: storePath } = error.context;
  if (typeof storePath !== "string") return undefined;
  // Whoever asks the doctor is not sent to the doctor: the message and the other findings say what to do.
  if (isDoctor && steps[error.code] === askDoctor) return undefined;
  return nextStep(error.code, { path: storePath, ...(home === undefined ? {} : { home }) }, rescuedOf(error));
}

interface Found {
  readonly violations: readonly { readonly rule: string }[];
  readonly left: readonly unknown[];
}

/** What to type after a verification: what can be derived is repaired, the rest is brought into a new store. */
export function nextAfterViolations(storePath: string, { violations, left }: Found): readonly string[] {
  const isBroken = violations.some(({ rule }) => rule !== "DERIVED");
  const isMendable = left.length > 0 || violations.some(({ rule }) => rule === "DERIVED");
  return [...(isMendable ? [repairCommand(storePath)] : []), ...(isBroken ? [inspectCommand(storePath)] : [])];
}
