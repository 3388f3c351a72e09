import type { Host } from "@turnkeeper/kernel";
import type { SeenFiles } from "./seen-files.ts";

export interface FileToolDeps {
  readonly host: Host;
  /**
   * What the file tools of one process share, so that an edit knows what was read: `createSeenFiles()`, one for all.
   * Without it the tool knows only its own calls.
   */
  readonly seen?: SeenFiles;
}
