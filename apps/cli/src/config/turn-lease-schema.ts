import { CodedError } from "@turnkeeper/kernel";
import { checkTurnLeaseOptions } from "@turnkeeper/turn-lease";
import { z } from "zod";
import { defaultConfig } from "./config.ts";
import { longestS } from "./seconds.ts";

const { agent } = defaultConfig;
const shortestTtlS = 0.1;

/** The longest renewal that a lease bears, where `renewS` is longer, as turn-lease has it. */
function longestRenewalS(ttlS: number, renewS: number): number | undefined {
  try {
    checkTurnLeaseOptions({ ttlMs: ttlS * 1000, renewEveryMs: renewS * 1000 });
    return undefined;
  } catch (error) {
    if (!CodedError.is(error, "OPTION_INVALID")) throw error;
    const { mostMs } = error.context;
    return typeof mostMs === "number" ? mostMs / 1000 : undefined;
  }
}

/** `agent.turn_lease`, where the renewal may depend on the rest. */
export interface TurnLeaseSection {
  readonly ttl_s: number;
  readonly renew_s?: number | undefined;
  readonly wait_s: number;
}

/** A lease bears two renewals, as turn-lease has it. */
export const turnLease: z.ZodType<TurnLeaseSection> = z
  .strictObject({
    ttl_s: z
      .number()
      .min(shortestTtlS)
      .max(longestS)
      .default(agent.turn_lease.ttl_s)
      .describe("How long a lease outlives its last renewal."),
    renew_s: z
      .number()
      .min(0.001)
      .max(longestS)
      .optional()
      .describe("How often a lease is renewed; two renewals must fit. Default: 60, or a fifth of a shorter ttl_s."),
    wait_s: z
      .number()
      .min(0)
      .max(longestS)
      .default(agent.turn_lease.wait_s)
      .describe("How long a call waits for a busy session."),
  })
  .superRefine(({ ttl_s, renew_s }, context) => {
    // A ttl_s that is wrong is told and replaced; what renew_s is worth then is another look.
    if (renew_s === undefined || ttl_s < shortestTtlS) return;
    const mostS = longestRenewalS(ttl_s, renew_s);
    if (mostS === undefined) return;
    const message = `expected at most ${mostS}, so that two renewals fit before a lease of ${ttl_s} s runs out`;
    context.addIssue({ code: "custom", path: ["renew_s"], message });
  });
