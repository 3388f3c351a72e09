import { checkedDelayMs } from "../delay.ts";
import type { Cancel, Clock, Host, Random, TimerOptions, Timers } from "../host.ts";
import { encodeUlid } from "../ulid.ts";

export interface VirtualHostOptions {
  /** Seeds ids and chance; the same seed gives the same run. Default 1. */
  readonly seed?: number;
  readonly wallMs?: number;
  readonly bootMs?: number;
  readonly bootId?: string;
}

/** A host whose time moves only when a test says so, and whose ids and chance come from a seed. */
export interface VirtualHost extends Host {
  /** Moves all three clocks, firing due timers in order and letting promises settle between them. */
  advance(ms: number): Promise<void>;
  /** Lets promises (and real I/O callbacks already due) settle without moving time. */
  settle(): Promise<void>;
  /** Steps the wall clock alone, forward or back, as NTP or an operator would. */
  jumpWall(ms: number): void;
  /** The machine sleeps: wall and boot time pass, monotonic time and timers stand still. */
  suspend(ms: number): void;
  /** The machine restarts: another boot id, boot time from zero, and no timer survives; wall time goes on. */
  reboot(): void;
  /** Timers that are armed and have not fired: zero after a clean end. */
  pendingTimerCount(): number;
}

interface PendingTimer {
  readonly dueMs: number;
  readonly order: number;
  readonly fn: () => void;
}

/** mulberry32: 32 bits of state, enough for schedules and the same on every platform. */
function seededUnit(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Promise chains of any length, and an immediate that one of them scheduled, settle within these hops.
const settleHops = 4;

export function virtualHost(options: VirtualHostOptions = {}): VirtualHost {
  const unit = seededUnit(options.seed ?? 1);
  let wallMs = options.wallMs ?? Date.UTC(2026, 0, 1);
  let bootMs = options.bootMs ?? 1_000_000;
  let monotonicMs = 0;
  let orderCount = 0;
  let rebootCount = 0;
  const firstBootId = options.bootId ?? "virtual-boot";
  const pending = new Set<PendingTimer>();

  const clock: Clock = {
    wallMs: () => wallMs,
    monotonicMs: () => monotonicMs,
    bootMs: () => bootMs,
    get bootId() {
      return rebootCount === 0 ? firstBootId : `${firstBootId}-${rebootCount}`;
    },
  };
  const arm = (dueMs: number, fn: () => void): Cancel => {
    const timer: PendingTimer = { dueMs, order: orderCount++, fn };
    pending.add(timer);
    return () => void pending.delete(timer);
  };
  const timers: Timers = {
    after: (ms: number, fn: () => void, _options?: TimerOptions) => arm(monotonicMs + checkedDelayMs(ms), fn),
    afterPoll: (fn) => arm(monotonicMs, fn),
    // No time passes before it, so no test has to move time for it.
    soon: (fn) => {
      let isDue = true;
      queueMicrotask(() => isDue && fn());
      return () => void (isDue = false);
    },
  };
  const random: Random = {
    id: () =>
      encodeUlid(
        wallMs,
        Uint8Array.from({ length: 10 }, () => Math.floor(unit() * 256)),
      ),
    unit,
  };
  const settle = async (): Promise<void> => {
    for (let hop = 0; hop < settleHops; hop++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const nextDue = (untilMs: number): PendingTimer | undefined => {
    let next: PendingTimer | undefined;
    for (const timer of pending) {
      if (timer.dueMs > untilMs) continue;
      if (!next || timer.dueMs < next.dueMs || (timer.dueMs === next.dueMs && timer.order < next.order)) next = timer;
    }
    return next;
  };
  const move = (ms: number): void => {
    monotonicMs += ms;
    wallMs += ms;
    bootMs += ms;
  };
  const advance = async (ms: number): Promise<void> => {
    const untilMs = monotonicMs + checkedDelayMs(ms);
    await settle();
    for (let timer = nextDue(untilMs); timer; timer = nextDue(untilMs)) {
      pending.delete(timer);
      move(Math.max(0, timer.dueMs - monotonicMs));
      timer.fn();
      await settle();
    }
    move(untilMs - monotonicMs);
  };

  return {
    clock,
    timers,
    random,
    advance,
    settle,
    jumpWall: (ms) => void (wallMs += ms),
    suspend: (ms) => {
      checkedDelayMs(ms);
      wallMs += ms;
      bootMs += ms;
    },
    reboot: () => {
      rebootCount++;
      bootMs = 0;
      pending.clear();
    },
    pendingTimerCount: () => pending.size,
  };
}
