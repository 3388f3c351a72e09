import { answerApproval, checkedSessionId } from "@turnkeeper/agent-core";
import type { ApprovalOutcome } from "@turnkeeper/agent-core";
import { unansweredCalls } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import type { CommonFlags } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { holderText } from "../display/finished-line.ts";
import { printable } from "../display/style.ts";
import { exitCode } from "../exit-code.ts";
import { withObserved } from "../observer.ts";
import { runCommand, whyCommand } from "../printed-command.ts";
import type { CommandPlace } from "../printed-command.ts";
import { jsonLine } from "../json-line.ts";

const done = { allow: "Allowed", deny: "Denied" } as const;

/** What happens next, for a person. */
function nextText({ turn, isResumed }: Recorded, topId: string, place: CommandPlace): string {
  const open = unansweredCalls(turn);
  const asked = open.filter(({ child }) => !child).map(({ callId }) => printable(callId));
  if (asked.length > 0) return `The turn still waits for an answer to call ${asked.join(", ")}.`;
  const [awaited] = open.flatMap(({ child }) => child ?? []);
  if (awaited) return `The turn still waits for the subagent in session ${awaited.sessionId}.`;
  if (isResumed) return `The turn goes on in ${holderText(turn.holder)}.`;
  return `Nobody has the session open: the turn goes on in a gateway that has its tools, else with the next message: ${runCommand(place, topId)}`;
}

/** The session that a person talks to: of a subagent's, the one above all that wait for it. */
async function topSessionOf(store: StateStore, sessionId: string): Promise<string> {
  const parent = (await store.sessions.read(sessionId))?.parent;
  const [view] = parent ? await store.turns.running(parent.sessionId) : [];
  return parent && view?.turn.turnId === parent.turnId ? topSessionOf(store, parent.sessionId) : sessionId;
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
    if (flags.json) io.stdout.line(jsonLine(outcomeJson(sessionId, callId, outcome)));
    switch (outcome.kind) {
      case "recorded":
        if (!flags.json)
          io.stderr.line(
            `${done[decision]} call ${printable(callId)}. ${nextText(outcome, await topSessionOf(store, sessionId), context.place)}`,
          );
        return exitCode.ok;
      case "already-answered": {
        const { answer } = outcome;
        complain(io, `Call ${printable(callId)} was answered before: ${answer.decision}, by ${printable(answer.by)}.`);
        return answer.decision === decision ? exitCode.ok : exitCode.failed;
      }
      case "nothing-asked": {
        const [view] = await store.turns.running(sessionId);
        const { child, resultUntilMs } = view?.turn.approvals?.find((asked) => asked.callId === callId) ?? {};
        const isClients = resultUntilMs !== undefined && view?.turn.state === "suspended";
        const own = isClients
          ? " Its client runs it, and sends the result: it cannot be allowed. Deny it, or stop the turn."
          : "";
        const instead = child
          ? ` It waits for the subagent in session ${child.sessionId}; what that asks: ${whyCommand(context.place.path, child.sessionId)}`
          : own;
        complain(io, `Nobody is asked about call ${printable(callId)} on session ${sessionId}.${instead}`);
        return exitCode.failed;
      }
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
