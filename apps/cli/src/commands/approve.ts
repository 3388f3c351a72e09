import { answerApproval, checkedSessionId } from "@turnkeeper/agent-core";
import type { ApprovalOutcome } from "@turnkeeper/agent-core";
import type { CommonFlags } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { holderText } from "../display/finished-line.ts";
import { printable } from "../display/style.ts";
import { exitCode } from "../exit-code.ts";
import { withObserved } from "../observer.ts";
import { runCommand } from "../printed-command.ts";
import type { CommandPlace } from "../printed-command.ts";

const done = { allow: "Allowed", deny: "Denied" } as const;

/** What happens next, for a person. */
function nextText({ turn, openCallIds, isResumed }: Recorded, place: CommandPlace): string {
  if (openCallIds.length > 0)
    return `The turn still waits for approval of call ${openCallIds.map(printable).join(", ")}.`;
  if (isResumed) return `The turn goes on in ${holderText(turn.holder)}.`;
  return `Nobody has the session open: the turn goes on in a gateway that has its tools, else with the next message: ${runCommand(place, turn.sessionId)}`;
}

type Recorded = Extract<ApprovalOutcome, { kind: "recorded" }>;

/** `turnkeeper approve ID CALL allow|deny`: answers a call that a turn waits for, from any process. */
export async function approve(
  io: CommandIo,
  id: string,
  callId: string,
  decision: "allow" | "deny",
  flags: CommonFlags & { readonly turn?: string },
): Promise<number> {
  const sessionId = checkedSessionId(id);
  return withObserved(io, flags, async ({ store, presence, context }) => {
    const outcome = await answerApproval(
      { store, presence },
      {
        sessionId,
        callId,
        decision,
        by: `turnkeeper approve, pid ${process.pid}`,
        ...(flags.turn === undefined ? {} : { turnId: flags.turn }),
      },
    );
    if (flags.json) io.stdout.line(JSON.stringify(outcomeJson(sessionId, callId, outcome)));
    switch (outcome.kind) {
      case "recorded":
        if (!flags.json)
          io.stderr.line(`${done[decision]} call ${printable(callId)}. ${nextText(outcome, context.place)}`);
        return exitCode.ok;
      case "already-answered": {
        const { answer } = outcome;
        complain(io, `Call ${printable(callId)} was answered before: ${answer.decision}, by ${printable(answer.by)}.`);
        return answer.decision === decision ? exitCode.ok : exitCode.failed;
      }
      case "nothing-asked":
        complain(io, `Nobody is asked about call ${printable(callId)} on session ${sessionId}.`);
        return exitCode.failed;
    }
  });
}

function outcomeJson(sessionId: string, callId: string, outcome: ApprovalOutcome): Record<string, unknown> {
  const asked = { session: sessionId, callId, outcome: outcome.kind };
  switch (outcome.kind) {
    case "recorded":
      return { ...asked, turnId: outcome.turn.turnId, open: outcome.openCallIds, isResumed: outcome.isResumed };
    case "already-answered":
      return { ...asked, decision: outcome.answer.decision, by: outcome.answer.by };
    case "nothing-asked":
      return asked;
  }
}
