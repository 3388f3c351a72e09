/**
 * Decides by rules what becomes of a tool call: it runs, it is asked for, it is refused.
 *
 * | what fits | decision |
 * | --- | --- |
 * | a `deny` pattern of any rule for the tool, or a rule that is `deny` | deny |
 * | an `ask` pattern of the nearest rule | ask |
 * | an `allow` pattern of the nearest rule | allow |
 * | none: `otherwise` of the nearest rule | that; `ask` in place of `allow` where there are `deny` patterns and the call cannot be read whole |
 * | no rule for the tool | `*`, where the call needs approval; else allow |
 *
 * The nearest rule is the one of the tool's own name, else of the longest pattern of names.
 */

import { checkedApprovalRules } from "./approval-rules.ts";
import type { ApprovalDecision, ApprovalRules, ToolApprovalRule } from "./approval-rules.ts";
import { approvalSubjectOf } from "./approval-subject.ts";
import type { ApprovalSubject } from "./approval-subject.ts";
import { textFits } from "./command-pattern.ts";

export interface ApprovalCall {
  readonly name: string;
  /** As the tool's schema checked it. */
  readonly input: unknown;
  /** Absolute; paths are judged relative to it. */
  readonly workspace: string;
  /** Whether the tool asks for approval by itself. */
  readonly needsApproval: boolean;
}

export interface ApprovalVerdict {
  readonly decision: ApprovalDecision;
  /** What decided, for people: `shell.deny: rm *`, `*`; absent where no rule did. */
  readonly rule?: string;
}

export interface ApprovalPolicy {
  /** Looks at the call as it is now; what a path leads to may change until it runs, and the tool looks again. */
  decide(call: ApprovalCall): ApprovalVerdict;
}

const everything = "*";

/** Makes the policy of such rules; throws `OPTION_INVALID` for rules that are none. */
export function approvalPolicy(rules: ApprovalRules): ApprovalPolicy {
  const checked = checkedApprovalRules(rules);
  const byName = typeof checked === "string" ? { [everything]: checked } : checked;
  const entries = Object.entries(byName).map(([name, rule]) => ({ name, rule: ruleOf(rule) }));
  return Object.freeze<ApprovalPolicy>({ decide: (call) => decide(entries, call) });
}

interface RuleEntry {
  readonly name: string;
  readonly rule: ToolApprovalRule;
}

function ruleOf(rule: ApprovalDecision | ToolApprovalRule): ToolApprovalRule {
  return typeof rule === "string" ? { otherwise: rule } : rule;
}

function decide(entries: readonly RuleEntry[], call: ApprovalCall): ApprovalVerdict {
  const named = entries
    .filter(({ name }) => name !== everything && textFits(name, call.name))
    .toSorted(
      (left, right) =>
        Number(right.name === call.name) - Number(left.name === call.name) || right.name.length - left.name.length,
    );
  const general = entries.filter(({ name }) => name === everything);
  // The general rule is for calls that need approval; its patterns forbid in any case.
  const holding = call.needsApproval ? [...named, ...general] : named;
  const subject = approvalSubjectOf(call.input, call.workspace);

  for (const { name, rule } of [...named, ...general]) {
    const met = rule.deny?.find((pattern) => subject.metBy(pattern));
    if (met !== undefined) return { decision: "deny", rule: `${name}.deny: ${met}` };
  }
  const denied = named.find(
    ({ rule }) => rule.otherwise === "deny" && rule.allow === undefined && rule.ask === undefined,
  );
  if (denied) return { decision: "deny", rule: denied.name };
  for (const entry of holding) {
    const verdict = verdictOf(entry, subject, [...named, ...general]);
    if (verdict) return verdict;
  }
  return { decision: call.needsApproval ? "ask" : "allow" };
}

function verdictOf(
  { name, rule }: RuleEntry,
  subject: ApprovalSubject,
  entries: readonly RuleEntry[],
): ApprovalVerdict | undefined {
  const asked = rule.ask?.find((pattern) => subject.metBy(pattern));
  if (asked !== undefined) return { decision: "ask", rule: `${name}.ask: ${asked}` };
  const allowed = rule.allow?.find((pattern) => subject.allowedBy(pattern));
  if (allowed !== undefined) return { decision: "allow", rule: `${name}.allow: ${allowed}` };
  if (rule.otherwise === undefined) return undefined;
  // What cannot be read whole may be what is forbidden.
  const guarded = rule.otherwise === "allow" && !subject.readable && entries.some((one) => hasGuards(one.rule));
  return { decision: guarded ? "ask" : rule.otherwise, rule: name };
}

function hasGuards({ deny, ask }: ToolApprovalRule): boolean {
  return (deny?.length ?? 0) + (ask?.length ?? 0) > 0;
}
