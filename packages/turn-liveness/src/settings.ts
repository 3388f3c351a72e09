import { CodedError } from "@turnkeeper/kernel";
import type { TurnLivenessErrorCode } from "./errors.ts";

export interface TurnLivenessSettings {
  /** How long a turn may make no progress, in milliseconds, outside declared waits. */
  readonly timeoutMs: number;
  /** How often the watch looks, in milliseconds. */
  readonly pollMs: number;
}

/**
 * 600 s: longer than the slowest silent step that is not a declared wait. 15 s: a fortieth of it, so that a stall is
 * found soon after its bound while a thousand turns cost 67 looks a second.
 */
export const turnLivenessDefaults: TurnLivenessSettings = Object.freeze({ timeoutMs: 600_000, pollMs: 15_000 });

const shortestPollMs = 10;
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

type Mapping = Readonly<Record<string, unknown>>;

function mappingOf(value: unknown): Mapping | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Mapping) : undefined;
}

/** A number of seconds as people write it in YAML, quoted or not. */
function numberOf(value: unknown): number {
  if (typeof value === "number") return value;
  const text = typeof value === "string" ? value.trim() : "";
  return decimal.test(text) ? Number(text) : Number.NaN;
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "number" || typeof value === "boolean" ? String(value) : `a value of type ${typeof value}`;
}

/**
 * Reads `agent.turn_liveness` (`timeout_s`, `poll_s`) out of a whole configuration; `off` when `timeout_s` is 0 or less.
 *
 * Never throws: what is missing gets its default silently, what is wrong gets it with one warning that names the key.
 * A `poll_s` below 0.01 is 0.01. Takes numeric strings; infinities and NaN are wrong, never "off".
 */
export function resolveTurnLivenessSettings(
  configuration: unknown,
  warn: (message: string) => void,
): TurnLivenessSettings | "off" {
  const section = mappingOf(configuration)?.["agent"];
  const raw = mappingOf(section)?.["turn_liveness"] ?? {};
  const settings = mappingOf(raw);
  if (!settings)
    warn(`agent.turn_liveness must be a mapping with timeout_s and poll_s, got ${show(raw)}; using the defaults.`);

  const read = (
    key: "timeout_s" | "poll_s",
    expectation: string,
    isRight: (ms: number) => boolean,
    defaultMs: number,
  ): number => {
    const value = settings?.[key] ?? undefined;
    if (value === undefined) return defaultMs;
    const ms = numberOf(value) * 1000;
    if (isRight(ms)) return ms;
    warn(`agent.turn_liveness.${key} must be ${expectation}, got ${show(value)}; using ${defaultMs / 1000}.`);
    return defaultMs;
  };
  const timeoutMs = read(
    "timeout_s",
    "a finite number of seconds (0 or less turns the watchdog off)",
    Number.isFinite,
    turnLivenessDefaults.timeoutMs,
  );
  const pollMs = read(
    "poll_s",
    "a finite number of seconds above 0",
    (ms) => Number.isFinite(ms) && ms > 0,
    turnLivenessDefaults.pollMs,
  );
  return timeoutMs <= 0 ? "off" : Object.freeze({ timeoutMs, pollMs: Math.max(shortestPollMs, pollMs) });
}

/** Refuses settings that would judge at once or never. */
export function checkSettings(settings: TurnLivenessSettings): TurnLivenessSettings {
  for (const key of ["timeoutMs", "pollMs"] as const) {
    const value = settings[key];
    if (Number.isFinite(value) && value > 0) continue;
    const message = `watchTurn: setting ${key} must be a finite number of milliseconds above 0, got ${value}.`;
    throw new CodedError<TurnLivenessErrorCode>("OPTION_INVALID", message, { context: { option: key } });
  }
  return settings;
}
