import type { RunningTurn, SessionItem } from "./gateway-json.ts";
import type { Tone } from "./live-turn.ts";
import { durationText } from "./time-text.ts";

/** How a running turn stands, worst first where several hold. */
export type Standing =
  | "dead"
  | "leaked"
  | "stalled"
  | "asks"
  | "awaits-result"
  | "stopping"
  | "unknown"
  | "silent"
  | "running";

/** Nothing that takes less is worth a warning, however short the bound is. */
const silentMsMin = 5000;

export function standingOf({ state, stop, progress }: RunningTurn): Standing {
  if (state !== "alive" && state !== "unknown") return state;
  if (stop) return "stopping";
  if (state === "unknown") return "unknown";
  const { ageMs = 0, stopsInMs = null } = progress ?? {};
  if (stopsInMs === null || ageMs < silentMsMin) return "running";
  if (stopsInMs <= 0) return "stalled";
  return ageMs > stopsInMs ? "silent" : "running";
}

export const standingTexts: Readonly<Record<Standing, string>> = {
  running: "running",
  silent: "silent",
  stalled: "stalled",
  asks: "asks approval",
  "awaits-result": "waits for its client",
  stopping: "stopping",
  unknown: "no answer",
  leaked: "left behind",
  dead: "holder died",
};

export const standingTones: Readonly<Record<Standing, Tone>> = {
  running: "good",
  silent: "warn",
  stalled: "bad",
  asks: "info",
  "awaits-result": "info",
  stopping: "warn",
  unknown: "warn",
  leaked: "bad",
  dead: "bad",
};

/** What the running turn waits for, and for how long that excuses its silence. */
export function waitText({ progress }: Pick<RunningTurn, "progress">, agedMs: number): string {
  const wait = progress?.waits.toSorted((left, right) => right.endsInMs - left.endsInMs)[0];
  if (!wait) return "";
  const leftMs = wait.endsInMs - agedMs;
  const what = wait.name === "" ? wait.kind : `${wait.kind} ${wait.name}`;
  // What moves stands first: names are long, and cut where there is no room.
  return `${leftMs > 0 ? durationText(leftMs) : "too long"} · ${what}`;
}

/** Something that happened, for the list of it. */
export interface Happening {
  readonly atMs: number;
  readonly tone: Tone;
  readonly text: string;
  readonly sessionId?: string;
}

const worthTelling: ReadonlySet<Standing> = new Set<Standing>([
  "dead",
  "leaked",
  "stalled",
  "asks",
  "stopping",
  "silent",
]);

const standingSentences: Readonly<Partial<Record<Standing, (turn: RunningTurn) => string>>> = {
  dead: ({ pid, host }) => `The process of its turn has died: pid ${pid} on ${host}.`,
  leaked: ({ pid }) => `Process ${pid} has forgotten its turn.`,
  stalled: ({ progress }) => `No progress for ${durationText(progress?.ageMs ?? 0)}; it is being stopped.`,
  silent: ({ progress }) => `Silent for ${durationText(progress?.ageMs ?? 0)}.`,
  asks: () => "Its turn waits for approval.",
  stopping: ({ stop }) => `Its turn is being stopped by ${stop?.by ?? "somebody"}.`,
};

/** What changed for the worse between two looks at the running turns. */
export function happeningsBetween(
  before: readonly RunningTurn[],
  after: readonly RunningTurn[],
  atMs: number,
): readonly Happening[] {
  const known = new Map(before.map((turn) => [turn.turnId, standingOf(turn)]));
  return after.flatMap((turn): Happening[] => {
    const standing = standingOf(turn);
    const sentence = standingSentences[standing];
    if (!sentence || known.get(turn.turnId) === standing) return [];
    return [{ atMs, tone: standingTones[standing], text: sentence(turn), sessionId: turn.session }];
  });
}

/** A silence that is well on its way to its bound, however short that is: a short one may end between two looks. */
const isSilent = ({ progress }: RunningTurn): boolean =>
  progress !== null && progress.stopsInMs !== null && progress.ageMs > progress.stopsInMs;

/** Turns that are gone, and stood in a way that makes one want to know how they ended; few, however many are gone. */
export function worthAsking(
  before: readonly RunningTurn[],
  after: readonly RunningTurn[],
  countMax = 5,
): readonly RunningTurn[] {
  const running = new Set(after.map(({ turnId }) => turnId));
  const isWorth = (turn: RunningTurn): boolean => worthTelling.has(standingOf(turn)) || isSilent(turn);
  return before.filter((turn) => !running.has(turn.turnId) && isWorth(turn)).slice(0, countMax);
}

export const titleOf = ({ title, sessionId }: Pick<SessionItem, "title" | "sessionId">): string => title ?? sessionId;
