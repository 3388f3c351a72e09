import type { ProcessMarker } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";
import { z } from "zod";
import { endProcesses } from "./kill-ladder.ts";
import type { KillReceipt } from "./kill-ladder.ts";
import { resolveOptions } from "./options.ts";
import { checkedMarker } from "./process-marker.ts";

export interface KillMarkedOptions {
  /** Between TERM and KILL, in milliseconds; 0 sends KILL at once. Default 2,000: a build tool removes its lock files. */
  readonly graceMs?: number;
}

const optionsSchema = z.strictObject({ graceMs: z.number().min(0).max(600_000).default(2_000) });

/**
 * Ends every process of this host that carries the marker in its environment, daemonised ones too, and says what it did.
 *
 * For the end of a turn, and for whoever is granted a session after a turn that did not end itself, before its first
 * side effect. Never ends the calling process. Safe to repeat and to run in several processes at once. Rejects with
 * `OPTION_INVALID` for a marker without a variable: it would match every process.
 */
export async function killMarkedProcesses(
  deps: { readonly host: Host },
  marker: ProcessMarker,
  options?: KillMarkedOptions,
): Promise<KillReceipt> {
  const { graceMs } = resolveOptions("killMarkedProcesses", optionsSchema, options);
  return endProcesses(deps, { marker: checkedMarker(marker) }, { graceMs });
}
