import type { ApprovalDecision, ApprovalRules, ToolApprovalRule } from "@turnkeeper/tools";
import { z } from "zod";

const decision = z.enum(["ask", "allow", "deny"]);
const callPatterns = z.array(z.string().regex(/\S/, "expected a pattern"));
/** What happens to the calls of one tool. */
export const toolApproval: z.ZodType<ApprovalDecision | ToolApprovalRule> = z.union([
  decision,
  z.strictObject({
    deny: callPatterns.optional().describe("Calls that are refused; this wins over all else."),
    ask: callPatterns.optional().describe("Calls that are asked for."),
    allow: callPatterns.optional().describe("Calls that run unasked."),
    otherwise: decision.optional().describe("What happens to the tool's other calls."),
  }),
]);
/** A tool's name, or a pattern of several. */
export const toolNamePattern: RegExp = /^[a-zA-Z0-9_*-]+$/;
/** `tools.approval`. */
export const approvalRules: z.ZodType<ApprovalRules> = z
  .union([decision, z.record(z.string().regex(toolNamePattern), toolApproval)], {
    error: "expected ask, allow, deny, or rules by tool",
  })
  .describe(
    "What happens to a call that needs approval: ask, allow or deny; ask denies it where nobody can be asked. " +
      "Or rules by tool: a name (mcp__git__* for several, * for all that need approval) with one of these words, " +
      "or with lists of patterns: commands (git status*), paths (docs/*), hosts (docs.rs).",
  );
