import { checkedSessionId, reapTurns, requestStop } from "@turnkeeper/agent-core";
import { unansweredCalls } from "@turnkeeper/state-store";
import type { EndedTurn } from "@turnkeeper/state-store";
import type { CommonFlags } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { holderText } from "../display/finished-line.ts";
import { exitCode } from "../exit-code.ts";
import { endLeftProcesses } from "../left-processes.ts";
import { withObserved } from "../observer.ts";
import { jsonLine } from "../json-line.ts";

/** What a turn waited for that was suspended when it was stopped. */
function waitedFor({ approvals = [] }: EndedTurn): string {
  const isAsked = unansweredCalls({ approvals }).some(({ resultUntilMs }) => resultUntilMs === undefined);
  return isAsked ? "approval" : "results of its client's";
}

/** `turnkeeper stop ID`: answers at once; the turn ends in its own process. */
export async function stop(
  io: CommandIo,
  id: string,
  flags: CommonFlags & { readonly hard?: boolean },
): Promise<number> {
  const sessionId = checkedSessionId(id);
  return withObserved(io, flags, async ({ store, presence }) => {
    const deps = { store, presence, endProcesses: endLeftProcesses };
    const left = await reapTurns(deps, sessionId);
    const result = await requestStop(deps, sessionId, {
      hard: flags.hard ?? false,
      reason: "user-stop",
      by: `turnkeeper stop, pid ${process.pid}`,
    });
    if (result.kind === "stopped") {
      const { turn } = result.settled;
      if (flags.json) io.stdout.line(jsonLine({ session: sessionId, stopping: turn.turnId }));
      else
        io.stderr.line(
          `Turn ${turn.turnId} waited for ${waitedFor(turn)} and has ended; the calls that waited did not run.`,
        );
      return exitCode.ok;
    }
    if (result.kind === "requested") {
      const { turn } = result;
      // Heard now rather than at its next look; this process must not end before the knock is sent.
      await presence.wake(turn.holder, sessionId);
      if (flags.json) io.stdout.line(jsonLine({ session: sessionId, stopping: turn.turnId }));
      else io.stderr.line(`Asked ${holderText(turn.holder)} to stop turn ${turn.turnId}.`);
      return exitCode.ok;
    }
    if (flags.json)
      io.stdout.line(jsonLine({ session: sessionId, stopping: null, settled: left.map(({ turn }) => turn.turnId) }));
    const [dead] = left;
    const died = dead ? `: ${holderText(dead.turn.holder)} had died, and its turn is settled as crashed now` : "";
    complain(io, `Nothing runs on session ${sessionId}${died}.`);
    return exitCode.failed;
  });
}
