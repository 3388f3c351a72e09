/** The readings that boot time is made of, each in milliseconds. */
export interface BootReadings {
  /** Time since boot, suspend included: right, but a read of /proc costs twenty microseconds. */
  uptimeMs(): number;
  /** Cheap, but stands still while the machine is suspended. */
  monotonicMs(): number;
  /** Cheap, and goes on during suspend. */
  wallMs(): number;
}

/** Above the 10 ms steps of /proc/uptime, below any suspend that could matter to a lease. */
const toleranceMs = 20;

/**
 * Boot time at the price of two clock reads. The distance between boot and monotonic time changes only when the
 * machine sleeps, and then the distance between wall and monotonic time changes too; so the dear reading is taken anew
 * exactly when that distance has moved. A stepped wall clock costs one reading and nothing else. Never goes back.
 */
export function bootTime(readings: BootReadings): () => number {
  let bootAheadMs = Number.NaN;
  let wallAheadMs = Number.NaN;
  let latestMs = 0;
  return () => {
    const monotonicMs = readings.monotonicMs();
    const nowAheadMs = readings.wallMs() - monotonicMs;
    // Written so that NaN, the very first time, takes the reading.
    if (!(Math.abs(nowAheadMs - wallAheadMs) <= toleranceMs)) {
      wallAheadMs = nowAheadMs;
      bootAheadMs = readings.uptimeMs() - readings.monotonicMs();
    }
    latestMs = Math.max(latestMs, monotonicMs + bootAheadMs);
    return latestMs;
  };
}
