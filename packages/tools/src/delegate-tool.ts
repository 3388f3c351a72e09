import type { ToolContext, ToolDefinition } from "@turnkeeper/agent-core";
import { z } from "zod";
import { toolError } from "./errors.ts";

export interface DelegateInput {
  readonly task: string;
  readonly deadline_s?: number | undefined;
}

/** A few heartbeats of the child; from then on it is the child's progress that keeps the call alive. */
const boundMs = 120_000;

/**
 * The tool `delegate`: a subagent with a session of its own does a task, and its end is the answer, whatever it is. One
 * that fails, is stopped or runs out of time is an answer too, with what it had said.
 */
export function createDelegateTool(): ToolDefinition<DelegateInput> {
  return Object.freeze<ToolDefinition<DelegateInput>>({
    name: "delegate",
    description:
      "Hands a task to a subagent and answers with what it found or did. It has the same tools and workspace, but does not see this conversation: say all that it needs. Several calls at once run side by side.",
    input: z.strictObject({
      task: z.string().trim().min(1).describe("What to do, with everything that must be known for it."),
      deadline_s: z.number().positive().max(86_400).optional().describe("How long it may take. Default: no bound."),
    }),
    needsApproval: false,
    boundMs,
    mayRunAgain: true,
    async execute({ task, deadline_s }: DelegateInput, { delegate }: ToolContext) {
      if (!delegate) throw toolError("NO_SUBAGENTS", "There are no subagents here. Do the task yourself.");
      const child = await delegate(task, deadline_s === undefined ? {} : { deadlineMs: deadline_s * 1000 });
      const { sessionId, outcome, text, reason, detail } = child;
      return {
        session: sessionId,
        outcome,
        answer: text,
        ...(reason === undefined ? {} : { reason }),
        ...(detail === undefined ? {} : { detail }),
      };
    },
  });
}
