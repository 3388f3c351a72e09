import type { CodedError, Host } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createProgressClock, watchTurn } from "@turnkeeper/turn-liveness";
import type {
  ProgressClock,
  StallObservation,
  TurnLivenessSettings,
  WatchedTurn,
  WatchHandle,
} from "@turnkeeper/turn-liveness";

/** Where the work of a watch can be held up, to let something come in between. */
export type ParkPoint = "confirm-lease" | "onStall" | "before-consume" | "after-publish";

export interface SceneOptions {
  readonly settings?: TurnLivenessSettings | "off";
  readonly turn?: Partial<WatchedTurn>;
  /** What happens at a park point; a promise holds the watch up there. */
  readonly at?: Partial<Record<ParkPoint, () => void | Promise<void>>>;
  /** How the abort is committed; default: consume and publish in one step. */
  readonly watch?: typeof watchTurn;
}

/** One watched turn in virtual time, with everything it did in order. */
export interface Scene {
  readonly host: Host;
  readonly virtual: VirtualHost;
  readonly clock: ProgressClock;
  readonly scheduler: PeriodicScheduler;
  readonly watch: WatchHandle;
  readonly events: string[];
  readonly observations: StallObservation[];
  readonly faults: CodedError[];
  isPublished(): boolean;
  isRenewing(): boolean;
  /** The loop is blocked (or the process stopped): time passes on every clock, timers fire late. */
  block(ms: number): void;
  /** What is in a socket's buffer: delivered in the next poll phase. */
  receive(deliver: () => void): void;
  /** Ends the watch and asserts nothing; answers how many timers are left. */
  end(): Promise<number>;
}

export const settings: TurnLivenessSettings = { timeoutMs: 1000, pollMs: 100 };

export function makeScene(options: SceneOptions = {}): Scene {
  const virtual = virtualHost();
  let blockedMs = 0;
  const buffered: (() => void)[] = [];
  const host: Host = {
    clock: {
      wallMs: () => virtual.clock.wallMs() + blockedMs,
      monotonicMs: () => virtual.clock.monotonicMs() + blockedMs,
      bootMs: () => virtual.clock.bootMs() + blockedMs,
      bootId: virtual.clock.bootId,
    },
    timers: {
      after: (ms, fn, timerOptions) => virtual.timers.after(ms, fn, timerOptions),
      afterPoll: (fn) =>
        virtual.timers.afterPoll(() => {
          for (const deliver of buffered.splice(0)) deliver();
          fn();
        }),
      soon: (fn) => virtual.timers.soon(fn),
    },
    random: virtual.random,
  };
  const clock = createProgressClock({ host });
  const scheduler = createPeriodicScheduler({ host }, { slackMs: 0 });
  const events: string[] = [];
  const observations: StallObservation[] = [];
  const faults: CodedError[] = [];
  let isPublished = false;
  let isRenewing = true;
  const at = (point: ParkPoint): void | Promise<void> => options.at?.[point]?.();
  const turn: WatchedTurn = {
    name: "session-1",
    confirmLease: async () => {
      events.push("confirm lease");
      await at("confirm-lease");
      return true;
    },
    commitAbort: async (claim) => {
      await at("before-consume");
      if (!claim.consume()) {
        events.push("vetoed");
        return false;
      }
      isPublished = true;
      events.push("published");
      await at("after-publish");
      return true;
    },
    onStall: (observation) => {
      observations.push(observation);
      events.push("stalled");
      void at("onStall");
    },
    onResume: () => void events.push("resumed"),
    onAborted: () => void events.push("aborted"),
    withdraw: () => {
      isRenewing = false;
      events.push("withdrawn");
    },
    ...options.turn,
  };
  const watch = (options.watch ?? watchTurn)(
    { clock, scheduler, host, onFault: (fault) => void faults.push(fault) },
    options.settings ?? settings,
    turn,
  );
  return {
    host,
    virtual,
    clock,
    scheduler,
    watch,
    events,
    observations,
    faults,
    isPublished: () => isPublished,
    isRenewing: () => isRenewing,
    block: (ms) => void (blockedMs += ms),
    receive: (deliver) => void buffered.push(deliver),
    end: async () => {
      await watch.stop();
      await scheduler.close();
      return virtual.pendingTimerCount();
    },
  };
}

/** Advances poll by poll until `isReached`, at most `polls` of them; answers how much time passed. */
export async function advanceUntil(scene: Scene, isReached: () => boolean, polls: number): Promise<number> {
  const startMs = scene.host.clock.monotonicMs();
  for (let poll = 0; poll < polls && !isReached(); poll++) await scene.virtual.advance(settings.pollMs / 10);
  return scene.host.clock.monotonicMs() - startMs;
}

export function deferred<T = void>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle?.(value) };
}
