/**
 * What to type after a store has refused: one command for each code, with the store's real path, as a shell takes it.
 * No command here touches a damaged file but by reading it.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import type { TurnFinished } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import { shellWord } from "./shell-word.ts";

export const doctorCommand = (storePath: string): string => `turnkeeper doctor --store ${shellWord(storePath)}`;
export const verifyCommand = (storePath: string): string =>
  `turnkeeper sessions verify --store ${shellWord(storePath)}`;
export const inspectCommand = (storePath: string): string =>
  `turnkeeper sessions recover --source ${shellWord(storePath)} --inspect-only`;
export const repairCommand = (storePath: string, sessionId?: string): string =>
  `turnkeeper sessions repair${sessionId === undefined ? "" : ` ${sessionId}`} --store ${shellWord(storePath)}`;

/** The first name beside the store that nothing has. */
export function freeFolder(storePath: string, what: string): string {
  let folder = `${storePath}-${what}`;
  for (let number = 2; existsSync(folder); number++) folder = `${storePath}-${what}-${number}`;
  return folder;
}

/** The newest folder into which a process saved a store that was deleted or replaced under it. */
function rescuedFolder(storePath: string): string | undefined {
  let found: string | undefined;
  for (let number = 1; ; number++) {
    const folder = number === 1 ? `${storePath}-rescued` : `${storePath}-rescued-${number}`;
    if (!existsSync(folder)) return found;
    found = folder;
  }
}

/** Brings a rescued store back to its place; what stands there now is laid aside, with its log. */
function bringBack(storePath: string, rescued: string): string {
  const files = ["", "-wal", "-shm"].map((suffix) => `${storePath}${suffix}`).filter((file) => existsSync(file));
  const folder = shellWord(freeFolder(storePath, "replaced"));
  const aside = files.length === 0 ? "" : `mkdir ${folder} && mv ${files.map(shellWord).join(" ")} ${folder} && `;
  const name = path.join(rescued, path.basename(storePath));
  const [from, to] = [`${shellWord(name)} ${shellWord(`${name}-wal`)}`, shellWord(path.dirname(storePath))];
  return `${aside}mv ${from} ${to} && rmdir ${shellWord(rescued)} && ${verifyCommand(storePath)}`;
}

function afterReplacement(storePath: string): string {
  const rescued = rescuedFolder(storePath);
  return rescued === undefined ? layLogAside(storePath) : bringBack(storePath, rescued);
}

function afterDeletion(storePath: string): string {
  const rescued = rescuedFolder(storePath);
  if (rescued !== undefined) return bringBack(storePath, rescued);
  // A log that was put back makes the store whole.
  return existsSync(storePath) && existsSync(`${storePath}-wal`) ? verifyCommand(storePath) : doctorCommand(storePath);
}

/** What SQLite would replay onto the file that is there now, laid aside together. */
function layLogAside(storePath: string): string {
  const files = [`${storePath}-wal`, `${storePath}-shm`].filter((file) => existsSync(file));
  if (files.length === 0) return verifyCommand(storePath);
  const folder = shellWord(freeFolder(storePath, "replaced"));
  return `mkdir ${folder} && mv ${files.map(shellWord).join(" ")} ${folder} && ${verifyCommand(storePath)}`;
}

interface Step {
  readonly command: (storePath: string) => string;
  /** Whoever has the store open must end first. */
  readonly needsNobody?: boolean;
}

const steps: Readonly<Record<string, Step>> = {
  STORE_CORRUPT: { command: inspectCommand, needsNobody: true },
  STORE_TRUNCATED: { command: inspectCommand, needsNobody: true },
  STORE_REPLACED: { command: afterReplacement, needsNobody: true },
  STORE_DELETED: { command: afterDeletion, needsNobody: true },
  STORE_UNLOCKED: { command: verifyCommand },
  STORE_NEWER: { command: () => "npm install --global turnkeeper" },
  STORE_READONLY: { command: doctorCommand },
  STORE_UNAVAILABLE: { command: doctorCommand },
  STORE_FULL: { command: doctorCommand },
  STORE_IO: { command: doctorCommand },
  STORE_DUPLICATE: { command: doctorCommand },
  STORE_BUSY: { command: (storePath) => `turnkeeper top --store ${shellWord(storePath)}` },
  STORE_HELD: { command: (storePath) => `turnkeeper top --store ${shellWord(storePath)}` },
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
export async function nextStep(code: string, storePath: string): Promise<string | undefined> {
  const step = steps[code];
  if (!step) return undefined;
  const users = step.needsNobody ? await usersOf(storePath) : [];
  const first = users.length === 0 ? "" : `end ${users.join(" and ")}, then: `;
  return `${first}${step.command(storePath)}`;
}

/** Says it of a turn that the store ended. */
export async function tellNextStep(
  say: (line: string) => void,
  { outcome, reason = "" }: Pick<TurnFinished, "outcome" | "reason">,
  storePath: string,
): Promise<void> {
  const next = outcome === "failed" ? await nextStep(reason, storePath) : undefined;
  if (next !== undefined) say(`next: ${next}`);
}

/** The same for whatever a command failed with. */
export async function nextStepOfError(
  error: unknown,
  { isDoctor = false }: { readonly isDoctor?: boolean } = {},
): Promise<string | undefined> {
  if (!CodedError.is(error)) return undefined;
  const { path: storePath } = error.context;
  if (typeof storePath !== "string") return undefined;
  // Whoever asks the doctor is not sent to the doctor: the message and the other findings say what to do.
  if (isDoctor && steps[error.code]?.command === doctorCommand) return undefined;
  return nextStep(error.code, storePath);
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
