import type { EntryDraft, TakenInput, Transcript } from "@turnkeeper/state-store";
import { openMachinery } from "./agent.ts";
import type { MachineryDeps } from "./agent.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { TurnFinished } from "./events.ts";
import { resolveAgentOptions } from "./options.ts";
import type { AgentOptions } from "./options.ts";
import type { TurnBody } from "./session-runner.ts";
import type { RunOptions, Turn } from "./turn-call.ts";
import { insideTurn } from "./reentry.ts";
import type { TurnScope } from "./turn-machinery.ts";

/** What somebody else's agent loop works with inside a turn. */
export interface TurnHandle {
  readonly sessionId: string;
  readonly turnId: string;
  /** Give it to whatever the loop writes to outside the store: a receiver that has seen a greater one refuses it. */
  readonly fencingToken: number;
  /** What this turn answers: the caller's own input, or an older one that waited without a process to run it. */
  readonly input: Pick<TakenInput, "inputId" | "text">;
  /** Aborts on any stop of the turn: lease lost, stalled, user stop, deadline, shutdown. Hand it to every call that takes one. */
  readonly signal: AbortSignal;
  /** Says that the turn moved. A loop that says nothing for its bound is taken for stuck and stopped. */
  progress(kind: string, detail?: string): void;
  /** Announces a silence and its bound, in milliseconds; dispose it when the wait is over. */
  declareWait(name: string, boundMs: number): Disposable;
  /** Call it before each side effect: throws when the turn was stopped or its lease no longer holds. */
  beforeSideEffect(): Promise<void>;
  /** The conversation so far, this turn's input with it. */
  load(): Promise<Transcript>;
  /**
   * One durable step, all or nothing, refused once another process has the session. Where the store fails, the step is
   * kept in the spool, and the failure thrown: end the turn.
   */
  append(entries: readonly EntryDraft[]): Promise<void>;
}

export type WithTurnResult<Value> =
  /** The turn ended; `value` is what the body returned. */
  | { readonly kind: "answered"; readonly value: Value }
  /** It did not come to an answer: stopped, failed to get the session, cancelled. `finished` says why. */
  | { readonly kind: "ended"; readonly finished: TurnFinished };

export type WithTurnOptions = Omit<
  AgentOptions,
  | "system"
  | "workspace"
  | "maxIterations"
  | "modelAttempts"
  | "toolConcurrency"
  | "budget"
  | "guardrails"
  | "compaction"
  | "delegation"
> &
  Pick<RunOptions, "inputId" | "onBusy" | "deadlineMs">;

function handleOf({ store }: Pick<Required<MachineryDeps>, "store">, scope: TurnScope, input: TakenInput): TurnHandle {
  const { sessionId, turnId, grant, interrupt, clock } = scope;
  return {
    sessionId,
    turnId,
    fencingToken: grant.fencingToken,
    input: { inputId: input.inputId, text: input.text },
    signal: interrupt.signal,
    progress: (kind, detail) => clock.progress(kind, detail),
    declareWait: (name, boundMs) => clock.declareWait({ kind: "tool", name, boundMs }),
    beforeSideEffect: () => scope.beforeSideEffect(),
    load: () => store.transcript.load(sessionId),
    append: async (entries) => {
      await scope.append(entries);
      // The step is in the spool; the loop must not go on as if there were a store.
      if (scope.storeFailure) throw scope.storeFailure;
    },
  };
}

/**
 * Runs any async function as a durable turn: its input is stored before it runs and settled when it ends, one turn at a
 * time runs on the session over all processes, a stuck one is stopped, and a stop from anywhere reaches its signal.
 *
 * The body runs once for each input that this call must bring to its end, which `turn.input` names: older inputs of
 * dead processes first, then the caller's own, then what others left with `queue` or `steer` meanwhile. The result is
 * the caller's own; it is returned when all of them have ended and the session is free. What the body throws for the
 * caller's input ends that turn as failed and is thrown again then.
 *
 * A repeated `inputId` runs no body again and has no value: it follows the first call to its end, and is told it as
 * `ended` with that outcome. A body that ignores a soft stop for 60 s is stopped hard, and one that ignores that is
 * left behind after 10 s.
 */
export async function withTurn<Value>(
  deps: MachineryDeps,
  sessionId: string,
  input: string,
  body: (turn: TurnHandle) => Promise<Value>,
  options: WithTurnOptions = {},
): Promise<WithTurnResult<Value>> {
  const { inputId, onBusy, deadlineMs, ...rest } = options;
  const resolved = resolveAgentOptions(rest, process.cwd());
  const { closeOwn, ...machinery } = await openMachinery(deps);
  let own: { readonly value: Value } | { readonly error: unknown } | undefined;
  let call: Turn | undefined;
  const run: TurnBody["run"] = async (scope, start) => {
    const isOwn = start.input.inputId === call?.inputId;
    try {
      const value = await insideTurn(scope.sessionId, () => body(handleOf(machinery, scope, start.input)));
      if (isOwn) own = { value };
      return { outcome: "answered" };
    } catch (error) {
      if (isOwn) own = { error };
      throw error;
    }
  };
  const dispatcher = new Dispatcher(
    { ...machinery, endProcesses: deps.endProcesses, body: { run, resumes: false } },
    resolved,
  );
  try {
    call = dispatcher.run(sessionId, input, {
      ...(inputId === undefined ? {} : { inputId }),
      ...(onBusy === undefined ? {} : { onBusy }),
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
    });
    const finished = await call.result;
    if (own && "error" in own && finished.outcome === "failed") throw own.error;
    if (own && "value" in own && finished.outcome === "answered") return { kind: "answered", value: own.value };
    return { kind: "ended", finished };
  } finally {
    await dispatcher.idle();
    await dispatcher.close();
    await closeOwn();
  }
}
