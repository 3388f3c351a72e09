/**
 * The ports through which the packages see time and chance. They are passed in, never imported as globals, so that a
 * test can run hours in milliseconds and a failing schedule can be replayed by its seed.
 *
 * Which clock for what: wall time is for people and is never compared; monotonic time measures durations inside one
 * process and stands still while the machine is suspended; boot time counts suspend too and is comparable between the
 * processes of one boot, so expiry is judged on `(bootId, bootMs)`.
 */

/** Readings in milliseconds. */
export interface Clock {
  /** Milliseconds since the Unix epoch. Steps with NTP and with an operator's hand: for people and logs only. */
  wallMs(): number;
  /** Never steps; does not count suspend on Linux; meaningful inside this process only. */
  monotonicMs(): number;
  /** Milliseconds since this machine booted, suspend included; comparable between processes with the same `bootId`. */
  bootMs(): number;
  /** Names this boot of this kernel; the empty string where the platform does not tell (then nothing may be concluded). */
  readonly bootId: string;
}

/** Stops a timer that has not fired; safe to repeat, a no-op after it fired. */
export type Cancel = () => void;

export interface TimerOptions {
  /** Whether the pending timer keeps the process alive. Default true. */
  readonly keepAlive?: boolean;
}

export interface Timers {
  /**
   * Calls `fn` once, `ms` milliseconds from now on the monotonic clock, never synchronously. Throws `TIMER_INVALID`
   * for NaN, an infinity or a negative value (Node would fire at once); delays beyond 2^31 ms are chained.
   */
  after(ms: number, fn: () => void, options?: TimerOptions): Cancel;
  /**
   * Calls `fn` once after the event loop has been through a whole poll phase, so that I/O that was already waiting
   * has been delivered. A verdict on silence must be taken behind it (a late timer runs before late data).
   */
  afterPoll(fn: () => void): Cancel;
  /**
   * Calls `fn` once, behind every callback that is due already and before any time is waited for: what arrives
   * together can be gathered until then.
   */
  soon(fn: () => void): Cancel;
}

export interface Random {
  /** A fresh ULID: 26 characters, sortable by creation time, 80 random bits. */
  id(): string;
  /** A number in [0, 1). */
  unit(): number;
}

/** Everything ambient that a package may use, in one value. */
export interface Host {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}
