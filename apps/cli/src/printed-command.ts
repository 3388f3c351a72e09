/**
 * Commands that are printed to be typed. Each names its store by its real path, as a shell takes it: typed in another
 * folder, or on another day, it works on the same one.
 */
import { shellWord } from "./shell-word.ts";

/** Where a printed command works: on which store, and with whose settings where the command line named a home. */
export interface CommandPlace {
  readonly path: string;
  readonly home?: string;
}

const onStore = (command: string, storePath: string): string => `turnkeeper ${command} --store ${shellWord(storePath)}`;

/** For commands whose answer depends on the settings too. */
const inPlace = (command: string, { path, home }: CommandPlace): string =>
  onStore(home === undefined ? command : `${command} --home ${shellWord(home)}`, path);

export const verifyCommand = (storePath: string): string => onStore("sessions verify", storePath);
export const repairCommand = (storePath: string, sessionId?: string): string =>
  onStore(sessionId === undefined ? "sessions repair" : `sessions repair ${sessionId}`, storePath);
export const deleteCommand = (storePath: string, sessionId: string): string =>
  onStore(`sessions delete ${sessionId}`, storePath);
export const exportCommand = (storePath: string, sessionId: string): string =>
  onStore(`sessions export ${sessionId}`, storePath);
export const copyCommand = (fromPath: string, toPath: string): string =>
  `turnkeeper store copy ${shellWord(fromPath)} ${shellWord(toPath)}`;
export const stopCommand = (storePath: string, sessionId: string): string => onStore(`stop ${sessionId}`, storePath);
/** `decision` is typed as it stands. */
export const approveCommand = (storePath: string, sessionId: string, callId: string, decision: string): string =>
  onStore(`approve ${sessionId} ${shellWord(callId)} ${decision}`, storePath);
export const whyCommand = (storePath: string, sessionId: string): string => onStore(`why ${sessionId}`, storePath);
export const topCommand = (storePath: string): string => onStore("top", storePath);
export const inspectCommand = (storePath: string): string =>
  `turnkeeper sessions recover --source ${shellWord(storePath)} --inspect-only`;
export const doctorCommand = (place: CommandPlace): string => inPlace("doctor", place);
export const runCommand = (place: CommandPlace, sessionId?: string): string =>
  inPlace(sessionId === undefined ? 'run "…"' : `run "…" --session ${sessionId}`, place);
