/**
 * Children of one turn: a call that delegates makes a durable session of its own, runs its turn here, and waits for it.
 *
 *   | while the call waits           | the child            | the call                           | the notice          |
 *   | ------------------------------ | -------------------- | ---------------------------------- | ------------------- |
 *   | the child ends                 | has ended            | has its result                     | settled with that   |
 *   | the parent is stopped softly   | goes on              | is interrupted, and says so        | waits for the next turn |
 *   | the parent is stopped hard     | is stopped hard too  | waits a moment, is left behind then | as it comes out     |
 *   | the process dies               | is settled by others | has an unknown outcome             | waits for the next turn |
 *
 * A child is never closed from here: its turn ends itself or is settled by others, whoever still waits for it. What it
 * has running is told by signals that stay aborted, so a request that it makes after the stop ends at once too. Nothing
 * of a child holds its parent: it knows the ids of the turns that wait for it, and no object of theirs.
 */
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { SharedScheduler } from "@turnkeeper/periodic-scheduler";
import type { StateStore } from "@turnkeeper/state-store";
import type { ProgressClock } from "@turnkeeper/turn-liveness";
import type { RunOutcome, TurnEventBody, TurnFinished } from "../events.ts";
import type { ChildTask } from "../call-request.ts";
import type { Approval } from "../tool-call.ts";
import type { Turn } from "../turn-call.ts";
import type { TurnScope } from "../turn-machinery.ts";
import { ChildPlaces } from "./child-places.ts";
import { ChildPulse } from "./child-pulse.ts";

/** What a child came to. */
export interface ChildResult {
  /** Its session, which stays. */
  readonly sessionId: string;
  readonly outcome: RunOutcome;
  /** Its answer, or what it had said. */
  readonly text: string;
  readonly reason?: string;
  readonly detail?: string;
}

export interface DelegateOptions {
  /** How long the child's turn may take, in milliseconds. Default: the agent's. */
  readonly deadlineMs?: number;
}

/** Hands a task to a child and waits for its end. */
export type Delegate = (task: string, options?: DelegateOptions) => Promise<ChildResult>;

export interface DelegationDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly scheduler: SharedScheduler;
  /** Runs the task as the turn of a session of its own. */
  readonly runChild: (task: ChildTask) => Turn;
  /** The clock of a session's turn that runs here. */
  readonly clockOf: (sessionId: string) => ProgressClock | undefined;
}

export interface DelegationSettings {
  readonly maxChildren: number;
  readonly maxDepth: number;
  readonly deadlineMs: number | undefined;
  readonly lookEveryMs: number;
}

function refusal(code: "CHILD_LIMIT" | "CHILD_DEPTH" | "CHILD_LEFT", message: string): CodedError {
  return new CodedError(code, message);
}

/** How many sessions stand above this one, as far as it matters. */
async function depthOf(store: StateStore, sessionId: string, enough: number): Promise<number> {
  let depth = 0;
  let parentId = (await store.sessions.read(sessionId))?.parent?.sessionId;
  while (parentId !== undefined && depth < enough) {
    depth++;
    parentId = (await store.sessions.read(parentId))?.parent?.sessionId;
  }
  return depth;
}

interface RunningChild {
  readonly child: Turn;
  /** Ends the call's wait for it. */
  readonly leave: () => void;
}

/** How long a person may take over what a child asks before its parent counts as stuck, in milliseconds. */
const approvalBoundMs = 3_600_000;

/** Who hears what a child asks; nobody any more once its parent has left it, since a child holds nothing of its parent. */
interface Hearing {
  parent: { readonly emit: (event: TurnEventBody) => void; readonly clock: ProgressClock } | undefined;
}

/** Reads a child's events: what is not read would wait in memory. What it asks is asked of its parent's caller. */
async function hear(child: Turn, hearing: Hearing): Promise<void> {
  let waiting: Disposable | undefined;
  const isOver = (): void => {
    waiting?.[Symbol.dispose]();
    waiting = undefined;
  };
  for await (const event of child) {
    if (event.type === "turn.started" || event.type === "turn.finished") isOver();
    if (event.type !== "approval.requested" || !hearing.parent) continue;
    const { callId, name, input } = event;
    // A grandchild's question was told by its parent in the same way.
    const { childSessionId = event.sessionId, childTurnId = event.turnId } = event;
    const { emit, clock } = hearing.parent;
    waiting ??= clock.declareWait({ kind: "approval", name, boundMs: approvalBoundMs });
    const turn = childTurnId === undefined ? {} : { childTurnId };
    emit({ type: "approval.requested", callId, name, input, childSessionId, ...turn });
  }
  isOver();
}

export class TurnDelegation {
  readonly #deps: DelegationDeps;
  readonly #settings: DelegationSettings;
  readonly #scope: TurnScope;
  readonly #approval: Approval;
  readonly #emit: (event: TurnEventBody) => void;
  readonly #isResumed: boolean;
  #places: Promise<ChildPlaces> | undefined;
  readonly #running = new Set<RunningChild>();

  constructor(
    deps: DelegationDeps,
    settings: DelegationSettings,
    scope: TurnScope,
    start: {
      readonly approval: Approval;
      readonly emit: (event: TurnEventBody) => void;
      /** The turn goes on: it may have had children before. */
      readonly resumed?: unknown;
    },
  ) {
    this.#deps = deps;
    this.#settings = settings;
    this.#scope = scope;
    this.#approval = start.approval;
    this.#emit = start.emit;
    this.#isResumed = start.resumed !== undefined;
  }

  /** What one call delegates with. `onTold` gets the notices that the call's result says all of. */
  ofCall(callId: string, onTold: (inputId: string) => void): Delegate {
    return async (task, options = {}) => {
      const child = await this.#start(callId, task, options);
      const startedAtMs = this.#deps.host.clock.monotonicMs();
      this.#emit({ type: "child.started", callId, childSessionId: child.sessionId });
      const hearing: Hearing = { parent: { emit: this.#emit, clock: this.#scope.clock } };
      void hear(child, hearing);
      const { sessionId } = child;
      const { outcome, text, reason, detail } = await this.#end(child).finally(() => {
        hearing.parent = undefined;
      });
      const durationMs = Math.round(this.#deps.host.clock.monotonicMs() - startedAtMs);
      this.#emit({ type: "child.finished", callId, childSessionId: sessionId, outcome, durationMs });
      this.#scope.clock.progress("child", sessionId);
      for (const inputId of await this.#noticesOf(sessionId)) onTold(inputId);
      return {
        sessionId,
        outcome,
        text,
        ...(reason === undefined ? {} : { reason }),
        ...(detail === undefined ? {} : { detail }),
      };
    };
  }

  async #start(callId: string, task: string, { deadlineMs }: DelegateOptions): Promise<Turn> {
    const { store, runChild } = this.#deps;
    const { maxChildren, maxDepth, deadlineMs: usualMs } = this.#settings;
    const { sessionId, turnId, interrupt } = this.#scope;
    this.#places ??= this.#findPlaces().catch((error: unknown) => {
      // A store that could not be read may be read for the next call.
      this.#places = undefined;
      throw error;
    });
    const place = (await this.#places).reserve();
    try {
      if (!place)
        throw refusal(
          "CHILD_LIMIT",
          `A turn may have ${maxChildren} subagents, and had them. Go on with what they said.`,
        );
      if ((await depthOf(store, sessionId, maxDepth)) >= maxDepth)
        throw refusal("CHILD_DEPTH", "A subagent may have no subagents of its own here. Do this part yourself.");
      interrupt.signal.throwIfAborted();
      const child = runChild({
        sessionId: this.#childId(place.number),
        text: task,
        parent: { sessionId, turnId, callId },
        approval: this.#approval,
        deadlineMs: deadlineMs ?? usualMs,
      });
      place.commit();
      return child;
    } finally {
      place?.rollback();
    }
  }

  #childId(number: number): string {
    return `child-${this.#scope.turnId}-${number}`;
  }

  /** Neither a suspension nor another process gives a turn its places back. */
  async #findPlaces(): Promise<ChildPlaces> {
    const { maxChildren } = this.#settings;
    const taken: number[] = [];
    for (let number = 1; this.#isResumed && number <= maxChildren; number++)
      if (await this.#deps.store.sessions.read(this.#childId(number))) taken.push(number);
    return new ChildPlaces(maxChildren, taken);
  }

  /** A hard stop goes down to the child as long as it runs; a soft one only where it had come before the child. */
  #attach(running: RunningChild): void {
    const { signal, hardSignal } = this.#scope.interrupt;
    const { child } = running;
    if (hardSignal.aborted) return child.stop({ hard: true, reason: "parent", by: this.#name });
    if (signal.aborted) child.stop({ reason: "parent", by: this.#name });
    // One listener for all of them: a signal with many is taken for a leak.
    if (this.#running.size === 0) {
      signal.addEventListener("abort", this.#leave);
      hardSignal.addEventListener("abort", this.#stopHard);
    }
    this.#running.add(running);
    void child.result.then(() => {
      this.#running.delete(running);
      if (this.#running.size > 0) return;
      signal.removeEventListener("abort", this.#leave);
      hardSignal.removeEventListener("abort", this.#stopHard);
    });
  }

  readonly #leave = (): void => {
    // A hard stop takes the children along: their ends are near, and are waited for as long as their calls are.
    if (this.#scope.interrupt.current?.hard) return;
    for (const { leave } of this.#running) leave();
  };

  readonly #stopHard = (): void => {
    for (const { child } of this.#running) child.stop({ hard: true, reason: "parent", by: this.#name });
  };

  get #name(): string {
    return `turn ${this.#scope.turnId} of session ${this.#scope.sessionId}`;
  }

  /** Waits for the child's end, or until it is left, and touches the parent's clock as long as the child moves. */
  async #end(child: Turn): Promise<TurnFinished> {
    const { scheduler, clockOf } = this.#deps;
    const { clock } = this.#scope;
    const pulse = new ChildPulse();
    const look = (): void => {
      if (pulse.look(clockOf(child.sessionId)) !== "stale") clock.progress("child", child.sessionId);
    };
    const heartbeat = scheduler.schedule(look, this.#settings.lookEveryMs, { name: `child ${child.sessionId}` });
    let leave = (): void => {};
    const left = new Promise<never>((_resolve, reject) => {
      const message = `The turn was stopped. The subagent in session ${child.sessionId} goes on, and a message tells of its end.`;
      leave = () => reject(refusal("CHILD_LEFT", message));
    });
    this.#attach({ child, leave });
    try {
      return await Promise.race([child.result, left]);
    } finally {
      await heartbeat.cancel();
    }
  }

  /** None where the child's end is not in the store yet, or its parent's turn is not its own any more. */
  async #noticesOf(childSessionId: string): Promise<readonly string[]> {
    const pending = await this.#deps.store.inbox.pending(this.#scope.sessionId);
    return pending.flatMap(({ inputId, child }) => (child?.sessionId === childSessionId ? [inputId] : []));
  }
}
