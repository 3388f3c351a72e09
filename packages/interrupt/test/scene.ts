import { createCompressionFence } from "@turnkeeper/compression-fence";
import type { CompressionFence } from "@turnkeeper/compression-fence";
import { createTurnInterrupt } from "@turnkeeper/interrupt";
import type { AbortClaim, CommitBarrier, TurnInterrupt, TurnInterruptOptions } from "@turnkeeper/interrupt";
import type { CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createProgressClock } from "@turnkeeper/turn-liveness";
import type { ProgressClock } from "@turnkeeper/turn-liveness";

/** One turn as agent-core wires it: a clock, a fence, an interrupt. */
export interface Scene {
  readonly host: VirtualHost;
  readonly clock: ProgressClock;
  readonly fence: CompressionFence;
  readonly turn: TurnInterrupt;
  readonly faults: CodedError[];
  /** The claim on the silence of this moment. */
  claim(): AbortClaim;
  /** Everything a stop leaves behind, for comparing before and after. */
  traces(): unknown;
}

export interface SceneOptions {
  readonly options?: TurnInterruptOptions;
  readonly commitBarrier?: CommitBarrier;
}

export function makeScene({ options, commitBarrier }: SceneOptions = {}): Scene {
  const host = virtualHost();
  const clock = createProgressClock({ host });
  const fence = createCompressionFence({ host });
  const faults: CodedError[] = [];
  const onFault = (fault: CodedError): void => void faults.push(fault);
  const turn = createTurnInterrupt({ host, commitBarrier: commitBarrier ?? fence, onFault }, options);
  return {
    host,
    clock,
    fence,
    turn,
    faults,
    claim: () => {
      const claim = clock.reserve(clock.snapshot());
      if (!claim) throw new Error("the turn moves");
      return claim;
    },
    traces: () => ({
      current: turn.current,
      isStopped: turn.signal.aborted,
      isHardStopped: turn.hardSignal.aborted,
      fence: fence.refusal,
      timers: host.pendingTimerCount(),
    }),
  };
}

export const stalled = { hard: true, reason: "stalled", by: "watchdog", message: "No progress for 600 s." } as const;
export const userStop = { hard: true, reason: "user-stop", by: "cli pid 4711" } as const;
export const softStop = { hard: false, reason: "user-stop", by: "cli pid 4711" } as const;
export const leaseLost = { hard: true, reason: "lease-lost", by: "lease" } as const;

export function deferred<T = void>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle?.(value) };
}
