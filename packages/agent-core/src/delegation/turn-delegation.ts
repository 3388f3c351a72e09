/**
 * Children of one turn: a call that delegates makes a durable session of its own, runs its turn here, and waits for it.
 *
 *   | while the call waits           | the child            | the call                           | the notice          |
 *   | ------------------------------ | -------------------- | ---------------------------------- | ------------------- |
 *   | the child ends                 | has ended            | has its result                     | settled with that   |
 *   | nothing but children that wait | goes on once it is   | is given up, and run again once    | settled with that   |
 *   |  for approval is waited for    | answered             | the first has ended (rule 7.19)    |                     |
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
import type { RunningTurn, StateStore } from "@turnkeeper/state-store";
import type { ProgressClock } from "@turnkeeper/turn-liveness";
import type { RunOutcome, TurnEventBody, TurnFinished } from "../events.ts";
import type { ChildTask } from "../call-request.ts";
import type { Approval } from "../tool-call.ts";
import type { Turn } from "../turn-call.ts";
import type { TurnScope } from "../turn-machinery.ts";
import { ChildHearing } from "./child-hearing.ts";
import { ChildPlaces } from "./child-places.ts";
import { ChildPulse } from "./child-pulse.ts";
import { childResult } from "./child-result.ts";
import type { ChildResult } from "./child-result.ts";
import { childIdOf, EarlierChildren, noticesOf } from "./earlier-children.ts";
import { RunningChildren } from "./running-children.ts";
import type { EndedChild } from "./earlier-children.ts";

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

function refusal(code: "CHILD_LIMIT" | "CHILD_DEPTH" | "CHILD_LEFT" | "CHILD_WAITS", message: string): CodedError {
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

/** The first child of a call whose open ones all wait for approval. */
export interface RestingChild {
  readonly sessionId: string;
  /** Rejects the call's `delegate` with `CHILD_WAITS`, for each of them. */
  readonly giveUp: () => void;
}

interface Children {
  readonly places: ChildPlaces;
  readonly earlier: EarlierChildren | undefined;
}

/** What a call makes a child for. */
interface ChildBegin {
  readonly callId: string;
  readonly task: string;
  readonly options: DelegateOptions;
  readonly onPause: ChildTask["onPause"];
}

/** What a call is told of its children. */
export interface CallOfChildren {
  /** Told the notices that the call's result says all of. */
  readonly onTold: (inputId: string) => void;
  /** Told whether nothing but children that wait for approval keeps the call. */
  readonly onResting: (child: RestingChild | undefined) => void;
}

export class TurnDelegation {
  readonly #deps: DelegationDeps;
  readonly #settings: DelegationSettings;
  readonly #scope: TurnScope;
  readonly #approval: Approval;
  readonly #emit: (event: TurnEventBody) => void;
  readonly #resumed: RunningTurn | undefined;
  #children: Promise<Children> | undefined;
  readonly #running: RunningChildren;

  constructor(
    deps: DelegationDeps,
    settings: DelegationSettings,
    scope: TurnScope,
    start: {
      readonly approval: Approval;
      readonly emit: (event: TurnEventBody) => void;
      /** The turn goes on: it may have had children before. */
      readonly resumed?: RunningTurn;
    },
  ) {
    this.#deps = deps;
    this.#settings = settings;
    this.#scope = scope;
    this.#approval = start.approval;
    this.#emit = start.emit;
    this.#resumed = start.resumed;
    this.#running = new RunningChildren(scope.interrupt, `turn ${scope.turnId} of session ${scope.sessionId}`);
  }

  /** What one call delegates with. */
  ofCall(callId: string, { onTold, onResting }: CallOfChildren): Delegate {
    const open = new Map<RestingChild, () => boolean>();
    const tellResting = (): void => {
      const [first] = open.keys();
      const doAllRest = Array.from(open.values()).every((isPaused) => isPaused());
      const giveUp = (): void => {
        for (const one of Array.from(open.keys())) one.giveUp();
      };
      onResting(first && doAllRest ? { sessionId: first.sessionId, giveUp } : undefined);
    };
    let madeCount = 0;
    return async (task, options = {}) => {
      const earlier = await this.#earlierChild(callId, madeCount++);
      if (earlier && "result" in earlier) {
        onTold(earlier.noticeId);
        return earlier.result;
      }
      let isPaused = false;
      const hearing = new ChildHearing({
        clock: this.#scope.clock,
        emit: this.#emit,
        onPause: (isNow) => {
          isPaused = isNow;
          tellResting();
        },
      });
      const begin = { callId, task, options, onPause: hearing.paused };
      const child = earlier ? this.#run(begin, earlier.goesOn) : await this.#start(begin);
      const startedAtMs = this.#deps.host.clock.monotonicMs();
      const { sessionId } = child;
      if (!earlier) this.#emit({ type: "child.started", callId, childSessionId: sessionId });
      void hearing.read(child);
      const waiting = this.#end(child);
      const giveUp = (): void => {
        hearing.parentRests();
        waiting.giveUp();
      };
      const own: RestingChild = { sessionId, giveUp };
      open.set(own, () => isPaused);
      tellResting();
      try {
        const { outcome, text, reason, detail } = await waiting.end;
        hearing.end();
        const durationMs = Math.round(this.#deps.host.clock.monotonicMs() - startedAtMs);
        this.#finished(callId, sessionId, outcome, durationMs);
        const notices = await noticesOf(this.#deps.store, this.#scope.sessionId, sessionId);
        for (const { inputId } of notices) onTold(inputId);
        return childResult(sessionId, { outcome, text, reason, detail });
      } catch (error) {
        if (!CodedError.is(error, "CHILD_WAITS")) hearing.end();
        throw error;
      } finally {
        open.delete(own);
        tellResting();
      }
    };
  }

  #finished(callId: string, childSessionId: string, outcome: RunOutcome, durationMs: number): void {
    this.#emit({ type: "child.finished", callId, childSessionId, outcome, durationMs });
    this.#scope.clock.progress("child", childSessionId);
  }

  /** Nothing of the turn hears of its children any more. */
  letGo(): void {
    this.#running.letGo();
  }

  /** What became of the child that an earlier run of the call made there; one that goes on is waited for again. */
  async #earlierChild(callId: string, index: number): Promise<EndedChild | { readonly goesOn: string } | undefined> {
    if (!this.#resumed) return undefined;
    const earlier = await (await this.#findChildren()).earlier?.ended(callId, index);
    if (earlier && "result" in earlier && earlier.isNews)
      this.#finished(callId, earlier.result.sessionId, earlier.result.outcome, earlier.durationMs);
    return earlier;
  }

  async #start(begin: ChildBegin): Promise<Turn> {
    const { store } = this.#deps;
    const { maxChildren, maxDepth } = this.#settings;
    const { sessionId, turnId, interrupt } = this.#scope;
    const place = (await this.#findChildren()).places.reserve();
    try {
      if (!place)
        throw refusal(
          "CHILD_LIMIT",
          `A turn may have ${maxChildren} subagents, and had them. Go on with what they said.`,
        );
      if ((await depthOf(store, sessionId, maxDepth)) >= maxDepth)
        throw refusal("CHILD_DEPTH", "A subagent may have no subagents of its own here. Do this part yourself.");
      interrupt.signal.throwIfAborted();
      const child = this.#run(begin, childIdOf(turnId, place.number));
      place.commit();
      return child;
    } finally {
      place?.rollback();
    }
  }

  /** Runs the task as the first message of that session; where it has it already, follows it. */
  #run({ callId, task, options, onPause }: ChildBegin, childSessionId: string): Turn {
    const { sessionId, turnId } = this.#scope;
    return this.#deps.runChild({
      sessionId: childSessionId,
      text: task,
      parent: { sessionId, turnId, callId },
      approval: this.#approval,
      deadlineMs: options.deadlineMs ?? this.#settings.deadlineMs,
      onPause,
    });
  }

  #findChildren(): Promise<Children> {
    return (this.#children ??= this.#readChildren().catch((error: unknown) => {
      // A store that could not be read may be read for the next call.
      this.#children = undefined;
      throw error;
    }));
  }

  async #readChildren(): Promise<Children> {
    const { maxChildren } = this.#settings;
    const earlier = this.#resumed && (await EarlierChildren.read(this.#deps.store, this.#resumed, maxChildren));
    return { places: new ChildPlaces(maxChildren, earlier?.numbers), earlier };
  }

  /** Waits for the child's end, or until it is left, and touches the parent's clock as long as the child moves. */
  #end(child: Turn): { readonly end: Promise<TurnFinished>; giveUp(): void } {
    const { scheduler, clockOf } = this.#deps;
    const { clock } = this.#scope;
    const { sessionId } = child;
    const pulse = new ChildPulse();
    const look = (): void => {
      if (pulse.look(clockOf(sessionId)) !== "stale") clock.progress("child", sessionId);
    };
    const heartbeat = scheduler.schedule(look, this.#settings.lookEveryMs, { name: `child ${sessionId}` });
    let reject = (_reason: Error): void => {};
    const left = new Promise<never>((_resolve, rejects) => {
      reject = rejects;
    });
    const leave = (): void =>
      reject(
        refusal(
          "CHILD_LEFT",
          `The turn was stopped. The subagent in session ${sessionId} goes on, and a message tells of its end.`,
        ),
      );
    const giveUp = (): void =>
      reject(
        refusal(
          "CHILD_WAITS",
          `The subagent in session ${sessionId} waits for approval. This call is run again once that has ended.`,
        ),
      );
    this.#running.attach(child, leave);
    const ended = async (): Promise<TurnFinished> => {
      try {
        return await Promise.race([child.result, left]);
      } finally {
        await heartbeat.cancel();
      }
    };
    return { end: ended(), giveUp };
  }
}
