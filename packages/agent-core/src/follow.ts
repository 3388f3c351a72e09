import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { reapTurns } from "./reaper.ts";
import type { ReapDeps } from "./reaper.ts";
import { endOfStoreFailure } from "./session-runner.ts";
import { requestStop } from "./stop.ts";
import { storedEnd } from "./stored-end.ts";
import type { TurnCall } from "./turn-call.ts";

const pollMs = 250;

export type FollowDeps = ReapDeps & {
  readonly host: Host;
  readonly runnerId: string;
  /** Gives a call back to the runner of its session: its input is pending and has nobody else to run it. */
  readonly rejoin: (call: TurnCall) => Promise<void>;
};

/**
 * Follows an input that somebody else runs to its durable end, and ends the call with what that turn was told. A holder
 * or runner that dies on the way is noticed: its turn is settled, its pending input is run here.
 */
export async function followInput(deps: FollowDeps, call: TurnCall): Promise<void> {
  const { store, presence } = deps;
  const { sessionId, inputId } = call.request;
  let wake = (): void => {};
  let isStopped = false;
  call.onStop = ({ hard = false, by = "caller" }) => {
    // The turn is asked to stop where it runs; this call goes on to hear how it ended.
    isStopped = true;
    void requestStop(deps, sessionId, { hard, reason: "user-stop", by }).catch(() => {});
    wake();
  };
  call.onWaitedOut = () => {};
  try {
    for (;;) {
      const input = await store.inbox.read(sessionId, inputId);
      if (!input)
        throw new CodedError("SESSION_DELETED", `Session ${sessionId} was deleted while its input was waited for.`);
      if (input.state === "settled") return call.finish(await storedEnd(store, input));
      if (input.state === "taken") {
        call.following(input.turnId);
        await reapTurns(deps, sessionId);
      } else {
        const { runner } = input;
        if (runner === undefined || runner.runnerId === deps.runnerId) return await deps.rejoin(call);
        const fate = await presence.probe(runner, runner.runnerId);
        if (fate === "dead" || fate === "unknown-here") await store.inbox.abandon(sessionId, runner.runnerId);
        else if (isStopped)
          return call.finish({
            outcome: "queued",
            reason: "user-stop",
            detail: "Stopped waiting. The message stays in the queue.",
          });
      }
      await new Promise<void>((resolve) => {
        const cancel = deps.host.timers.after(pollMs, resolve);
        wake = () => {
          cancel();
          resolve();
        };
      });
    }
  } catch (error) {
    call.finish(endOfStoreFailure(error));
  }
}
