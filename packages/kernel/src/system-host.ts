import { randomFillSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import { bootTime } from "./boot-time.ts";
import { checkedDelayMs, longestTimerMs } from "./delay.ts";
import type { Cancel, Clock, Host, Random, TimerOptions, Timers } from "./host.ts";
import { encodeUlid } from "./ulid.ts";

function readBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // No /proc (macOS, Windows): an unknown boot is a fact of its own, and callers fall back to observing.
    return "";
  }
}

const clock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  // CLOCK_BOOTTIME: counts suspend, unlike every clock of the JavaScript runtime.
  bootMs: bootTime({ uptimeMs: () => uptime() * 1000, monotonicMs: () => performance.now(), wallMs: () => Date.now() }),
  bootId: readBootId(),
};

const timers: Timers = {
  after(ms: number, fn: () => void, options: TimerOptions = {}): Cancel {
    let restMs = checkedDelayMs(ms);
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const nowMs = Math.min(restMs, longestTimerMs);
      restMs -= nowMs;
      timer = setTimeout(restMs > 0 ? arm : fn, nowMs);
      if (options.keepAlive === false) timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
  afterPoll(fn: () => void): Cancel {
    // The first hop runs in this turn's check phase, before the next poll; the second behind it.
    let hop = setImmediate(() => {
      hop = setImmediate(fn);
    });
    return () => clearImmediate(hop);
  },
  soon(fn: () => void): Cancel {
    const hop = setImmediate(fn);
    return () => clearImmediate(hop);
  },
};

const idBytes = 10;
// The kernel's chance is asked for in pages: a call for each id costs twenty times as much.
const pool = Buffer.alloc(400 * idBytes);
let poolUsed = pool.length;

function freshBytes(): Uint8Array {
  if (poolUsed === pool.length) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  poolUsed += idBytes;
  return pool.subarray(poolUsed - idBytes, poolUsed);
}

const random: Random = {
  id: () => encodeUlid(Date.now(), freshBytes()),
  unit: () => Math.random(),
};

/** The real clock, timers and randomness of this process. Composition roots pass it in; nothing else reads it. */
export const systemHost: Host = Object.freeze({ clock, timers, random });
