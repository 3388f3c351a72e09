import { CodedError } from "@turnkeeper/kernel";
import type { HandOver } from "@turnkeeper/state-store";
import { acquireTurnLease } from "@turnkeeper/turn-lease";
import type { GrantedLease } from "@turnkeeper/turn-lease";
import { createProgressClock } from "@turnkeeper/turn-liveness";
import { endOfStoreFailure } from "./call-end.ts";
import type { TurnEventBody } from "./events.ts";
import type { ResolvedAgentOptions } from "./options.ts";
import type { TurnCall } from "./turn-call.ts";
import { interruptedEnding } from "./turn-ending.ts";
import type { TurnEnding } from "./turn-ending.ts";
import { conductTurn } from "./turn-machinery.ts";
import type { TurnDeps, TurnScope } from "./turn-machinery.ts";
import { withKnownOutcome } from "./unknown-outcome.ts";

/** What runs in a turn that answers no input. */
export type InputlessBody = (scope: TurnScope, emit: (event: TurnEventBody) => void) => Promise<TurnEnding>;

export interface InputlessDeps extends TurnDeps {
  /** Aborts when the agent is closed: nothing begins any more. */
  readonly closing: AbortSignal;
  /** Aborts when what runs is to be stopped, too. */
  readonly stopping: AbortSignal;
}

/**
 * Runs work on a session that nobody sent a message for, as a turn of its own: exclusive, watched, stopped like any
 * other. A busy session is not waited for. Answers what the freed session leaves to do; never rejects.
 */
export async function runInputlessTurn(
  deps: InputlessDeps,
  options: Pick<ResolvedAgentOptions, "lease" | "liveness">,
  call: TurnCall,
  body: InputlessBody,
): Promise<HandOver | undefined> {
  const { store, host, scheduler, presence } = deps;
  const { sessionId } = call.request;
  const { lease, liveness } = options;
  const clock = createProgressClock({ host });
  try {
    if (!(await store.sessions.read(sessionId))) {
      const detail = `There is no session ${sessionId} yet, so there is nothing to do on it.`;
      call.finish({ outcome: "failed", reason: "SESSION_UNKNOWN", detail });
      return undefined;
    }
    const result = await acquireTurnLease(
      { store: store.leases, inbox: store.inbox, scheduler, host, presence },
      sessionId,
      {
        ...lease,
        waitMs: 0,
        signal: deps.closing,
        mayRenew: () => liveness === undefined || clock.hasEvidence(liveness.timeoutMs),
      },
    );
    if (result.kind === "granted") return await conduct(deps, options, call, { granted: result, clock }, body);
    if (result.kind === "busy") {
      const { holder } = result;
      const by = holder ? ` by pid ${holder.pid} on ${holder.host}` : "";
      call.finish({ outcome: "busy", reason: "session_busy", detail: `The session is held${by}; try again.` });
    } else call.finish({ outcome: "cancelled", reason: "shutdown" });
  } catch (error) {
    call.finish(endOfStoreFailure(error));
  }
  return undefined;
}

async function conduct(
  deps: InputlessDeps,
  { liveness }: Pick<ResolvedAgentOptions, "liveness">,
  call: TurnCall,
  { granted, clock }: { readonly granted: GrantedLease; readonly clock: ReturnType<typeof createProgressClock> },
  body: InputlessBody,
): Promise<HandOver | undefined> {
  const { store, host, stopping } = deps;
  const { lease, predecessors } = granted;
  const turnId = host.random.id();
  try {
    const begun = await withKnownOutcome(host, () => store.turns.begin(lease.grant, turnId, []));
    if (begun.kind !== "begun") {
      await lease.release();
      call.finish({ outcome: "interrupted", reason: "lease-lost" });
      return undefined;
    }
  } catch (error) {
    // Nothing runs under it yet: let go, so that nobody waits for its expiry.
    await lease.release().catch(() => lease[Symbol.asyncDispose]());
    throw error;
  }
  let removeListener = (): void => {};
  const conducted = await conductTurn(
    deps,
    {
      lease,
      turnId,
      clock,
      predecessors,
      onInterrupt: (interrupt) => {
        const shutDown = (): void => {
          const message = "The process that ran this turn is shutting down.";
          void interrupt.interrupt({ hard: true, reason: "shutdown", by: "this process", message });
        };
        if (stopping.aborted) shutDown();
        stopping.addEventListener("abort", shutDown, { once: true });
        removeListener = () => stopping.removeEventListener("abort", shutDown);
        call.started(turnId, { fencingToken: lease.fencingToken });
        call.keptBy({
          onStop: ({ hard = false, by = "caller" }) => void interrupt.interrupt({ hard, reason: "user-stop", by }),
          onWaitedOut: () => {},
        });
      },
    },
    { liveness },
    {
      onStalled: (idleMs, lastProgress) => call.emit({ type: "turn.stalled", idleMs, lastProgress }),
      onResumed: () => call.emit({ type: "turn.resumed" }),
    },
    async (scope) => {
      const ending = await body(scope, (event) => void call.emit(event));
      return scope.interrupt.current ? { ...ending, ...interruptedEnding(scope.interrupt) } : ending;
    },
  );
  removeListener();
  if (!conducted.ending)
    throw new CodedError("STORE_CONTRACT", `Turn ${turnId} answers no message, and nobody is asked about it.`);
  const { entries: _entries, ...end } = conducted.ending;
  call.finish(end);
  return conducted.handOver;
}
