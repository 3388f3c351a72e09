import type { RunOptions } from "@turnkeeper/agent-core";
import type { OnBusy } from "@turnkeeper/state-store";
import type { CommonFlags } from "./command-context.ts";

export const busyPolicies: readonly OnBusy[] = ["wait", "reject", "queue", "steer", "interrupt"];

/** Flags of the commands that run turns. */
export interface TurnFlags extends CommonFlags {
  readonly session?: string;
  readonly model?: string;
  readonly onBusy?: OnBusy;
  /** Seconds. */
  readonly waitTimeout?: number;
  readonly inputId?: string;
  readonly yes?: boolean;
}

export function runOptionsOf(flags: TurnFlags): RunOptions {
  return {
    ...(flags.inputId === undefined ? {} : { inputId: flags.inputId }),
    ...(flags.onBusy === undefined ? {} : { onBusy: flags.onBusy }),
    ...(flags.waitTimeout === undefined ? {} : { waitMs: flags.waitTimeout * 1000 }),
  };
}
