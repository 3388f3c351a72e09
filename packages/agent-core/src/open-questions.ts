import type { AskedCall, OpenTurn } from "@turnkeeper/state-store";

/** The calls of a turn that nobody has decided on yet, in the order of asking. */
export function openQuestions({ approvals = [] }: Pick<OpenTurn, "approvals">): readonly AskedCall[] {
  return approvals.filter(({ answer }) => answer === undefined);
}
