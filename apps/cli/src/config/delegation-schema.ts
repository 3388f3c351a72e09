import { z } from "zod";
import { defaultConfig } from "./config.ts";
import type { DelegationConfig } from "./config.ts";
import { seconds } from "./seconds.ts";

const { max_children, max_depth } = defaultConfig.agent.delegation;

const budget = z.strictObject({
  tokens: z.int().min(1).optional().describe("Tokens in and out, as the provider counts them."),
  cost: z
    .number()
    .positive()
    .optional()
    .describe("In the currency of the model's price (models.PROVIDER/MODEL.price)."),
});

/** How subagents run: as the agent itself does, but for what stands here. */
export const delegation: z.ZodType<DelegationConfig> = z.strictObject({
  max_children: z.int().min(1).max(10_000).default(max_children).describe("Subagents in one turn."),
  max_depth: z
    .int()
    .min(1)
    .max(100)
    .default(max_depth)
    .describe("Subagents of subagents of …; 1: none has any of its own."),
  deadline_s: seconds().optional().describe("How long the turn of one may take. Default: as long as it moves."),
  max_iterations: z
    .int()
    .min(1)
    .max(100_000)
    .optional()
    .describe("Model calls in one's turn. Default: agent.max_iterations."),
  budget: budget.optional().describe("What one's turn may use. Default: nothing bounds it but its iterations."),
});
