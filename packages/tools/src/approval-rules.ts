/** The form of approval rules as data: what a settings file holds, checked when it is read. */

import { z } from "zod";
import { resolveOptions } from "./options.ts";

export type ApprovalDecision = "ask" | "allow" | "deny";

/** For one tool: the calls that fit a pattern, and what becomes of the others. */
export interface ToolApprovalRule {
  readonly deny?: readonly string[] | undefined;
  readonly ask?: readonly string[] | undefined;
  readonly allow?: readonly string[] | undefined;
  /** For calls that fit no pattern. Default: as for a tool without a rule. */
  readonly otherwise?: ApprovalDecision | undefined;
}

/**
 * One decision for every call that needs approval, or rules by tool: a name, or a pattern of names with `*`; `*` alone
 * is for every call that needs approval and that no other name decides.
 */
export type ApprovalRules = ApprovalDecision | Readonly<Record<string, ApprovalDecision | ToolApprovalRule>>;

const decision = z.enum(["ask", "allow", "deny"]);
const patterns = z.array(z.string().regex(/\S/, "expected a pattern")).readonly().optional();

const rulesSchema = z.union([
  decision,
  z.record(
    z.string().regex(/^[a-zA-Z0-9_*-]+$/, "expected the name of a tool"),
    z.union([
      decision,
      z.strictObject({ deny: patterns, ask: patterns, allow: patterns, otherwise: decision.optional() }),
    ]),
  ),
]);

/** Throws `OPTION_INVALID`. */
export function checkedApprovalRules(rules: unknown): ApprovalRules {
  return resolveOptions<ApprovalRules>("approvalPolicy", rulesSchema, rules);
}
