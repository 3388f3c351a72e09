/**
 * Random scripts for model-based tests: the memory store is the specification, and whatever it answers to a script
 * another store must answer too. A script is plain data, and every step speaks relative to what the run has seen (the
 * newest grant, the one before), so that any part of a failing script is again a script.
 */
import type { Random } from "@turnkeeper/kernel";
import type { CallDecision } from "../approval.ts";
import type { OnBusy } from "../inbox.ts";
import type { TurnOutcome } from "../turn.ts";

/** Which grant of the session a step names: 0 the newest, 1 the one before it. */
export type GrantAge = number;

export type EntryKind = "text" | "call" | "result" | "stray-result";

/** What a step settles: an input that its turn took, a child's notice that waits, one that nobody offered. */
export type Settles = "nothing" | "taken" | "notice" | "stranger";

export type ScriptAction =
  | {
      readonly kind: "offer";
      readonly actor: string;
      readonly inputId: string;
      readonly text: string;
      readonly onBusy: OnBusy;
      readonly namesDead: boolean;
    }
  | {
      readonly kind: "acquire";
      readonly actor: string;
      readonly begins: boolean;
      readonly ttlMs: number;
      /** Names a grant to take over, of this age; `repeat` asks again as the holder of the newest grant. */
      readonly reclaims?: GrantAge;
      readonly isRepeat: boolean;
      /** Would go on with a suspended turn. */
      readonly resumes: boolean;
    }
  | { readonly kind: "renew"; readonly age: GrantAge; readonly ttlMs: number }
  | { readonly kind: "release"; readonly age: GrantAge }
  | {
      readonly kind: "append";
      readonly age: GrantAge;
      readonly entries: readonly EntryKind[];
      /** `repeat` sends the last committed step again; `conflict` sends its keys with other content. */
      readonly keys: "new" | "repeat" | "conflict";
      readonly settles: Settles;
    }
  | {
      readonly kind: "keep";
      readonly age: GrantAge;
      readonly entries: readonly EntryKind[];
      readonly keys: "new" | "repeat" | "conflict";
      readonly settles: Settles;
      readonly outcome?: TurnOutcome;
    }
  | { readonly kind: "compact"; readonly age: GrantAge; readonly cut: number; readonly isOld: boolean }
  /** Notes that a summary failed; `coolDownMs` absent: notes that nothing did. */
  | { readonly kind: "note-health"; readonly age: GrantAge; readonly coolDownMs?: number }
  | { readonly kind: "begin"; readonly age: GrantAge; readonly inputId: string }
  | { readonly kind: "take-steers"; readonly age: GrantAge }
  | {
      readonly kind: "end";
      readonly age: GrantAge;
      readonly outcome: TurnOutcome;
      readonly entries: readonly EntryKind[];
      readonly releases: boolean;
      readonly isRepeat: boolean;
    }
  /** A call of the grant's turn makes a child, and what becomes of that. */
  | {
      readonly kind: "delegate";
      readonly age: GrantAge;
      readonly fate: "ends" | "crashes" | "is-withdrawn" | "is-deleted" | "waits";
    }
  /** A step with nothing but a text, which settles the notice of a child that waits. */
  | { readonly kind: "answer-child"; readonly age: GrantAge }
  /** Makes a call and asks about so many of the turn's open ones, at most; a stray asks about one that is not open. */
  | { readonly kind: "suspend"; readonly age: GrantAge; readonly callCount: number; readonly isStray: boolean }
  /** Answers the oldest open question, or again the newest that was answered. */
  | {
      readonly kind: "answer";
      readonly isSecond: boolean;
      readonly decision: CallDecision;
      readonly namesOther: boolean;
    }
  | { readonly kind: "settle-foreign"; readonly age: GrantAge }
  | { readonly kind: "withdraw"; readonly inputId: string; readonly end: "cancelled" | "expired" }
  | { readonly kind: "abandon"; readonly actor: string }
  | { readonly kind: "request-stop"; readonly hard: boolean }
  | { readonly kind: "delete" }
  /** Takes the session out and imports it again. */
  | { readonly kind: "transplant" }
  | { readonly kind: "load"; readonly limit: number; readonly all: boolean; readonly isFromStart: boolean }
  | { readonly kind: "search"; readonly text: string; readonly limit: number }
  | { readonly kind: "set-title"; readonly title: string }
  | { readonly kind: "list"; readonly limit: number }
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "jump-wall"; readonly ms: number }
  | { readonly kind: "reopen" }
  | { readonly kind: "reboot" };

export type ScriptStep = ScriptAction & { readonly session: string };

const actors = ["a", "b", "c"] as const;
const policies: readonly OnBusy[] = ["wait", "wait", "queue", "steer", "steer", "reject", "interrupt"];
const entryKinds: readonly EntryKind[] = ["text", "text", "call", "call", "result", "result", "stray-result"];

/** How often each kind of step is drawn; the acts of a turn are common, or a script would rarely get into one. */
const weights: readonly (readonly [ScriptAction["kind"], number])[] = [
  ["offer", 20],
  ["acquire", 20],
  ["append", 20],
  ["end", 8],
  ["suspend", 5],
  ["answer", 8],
  ["keep", 6],
  ["compact", 6],
  ["note-health", 3],
  ["advance", 6],
  ["begin", 5],
  ["delegate", 5],
  ["answer-child", 5],
  ["take-steers", 5],
  ["withdraw", 4],
  ["renew", 4],
  ["release", 3],
  ["settle-foreign", 3],
  ["load", 3],
  ["abandon", 2],
  ["request-stop", 3],
  ["search", 3],
  ["set-title", 1],
  ["list", 2],
  ["jump-wall", 2],
  ["reopen", 2],
  ["delete", 1],
  ["transplant", 3],
  ["reboot", 1],
];

/** A random script of so many steps; the same `random` gives the same script. */
export function randomScript(random: Pick<Random, "unit">, stepCount = 60): readonly ScriptStep[] {
  const { unit } = random;
  const below = (count: number): number => Math.floor(unit() * count);
  const pick = <One>(from: readonly One[]): One => {
    const [one] = from.slice(below(from.length));
    if (one === undefined) throw new RangeError("Nothing to pick from.");
    return one;
  };
  const chance = (share: number): boolean => unit() < share;
  const kinds = weights.flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind));
  const age = (): GrantAge => (chance(0.8) ? 0 : 1 + below(2));
  const inputId = (): string => `input-${below(8)}`;
  const ttlMs = (): number => (chance(0.3) ? 2_000 : 60_000);
  const entries = (): readonly EntryKind[] => Array.from({ length: 1 + below(3) }, () => pick(entryKinds));

  const action = (kind: ScriptAction["kind"]): ScriptAction => {
    switch (kind) {
      case "offer": {
        // An id says what its text is, save now and then: else every second offer would be a conflict.
        const offered = inputId();
        const text = chance(0.05) ? "other text" : `text of ${offered}`;
        return { kind, actor: pick(actors), inputId: offered, text, onBusy: pick(policies), namesDead: chance(0.1) };
      }
      case "acquire": {
        const ask = {
          kind,
          actor: pick(actors),
          begins: chance(0.85),
          ttlMs: ttlMs(),
          isRepeat: chance(0.05),
          resumes: chance(0.8),
        } as const;
        return chance(0.25) ? { ...ask, reclaims: age() } : ask;
      }
      case "renew":
        return { kind, age: age(), ttlMs: ttlMs() };
      case "append": {
        const keys = chance(0.8) ? "new" : pick(["repeat", "conflict"] as const);
        const settles = chance(0.6) ? "nothing" : pick(["taken", "taken", "notice", "notice", "stranger"] as const);
        return { kind, age: age(), entries: entries(), keys, settles };
      }
      case "keep": {
        const keys = chance(0.7) ? "new" : pick(["repeat", "conflict"] as const);
        const settles = chance(0.6) ? "nothing" : pick(["taken", "notice", "stranger"] as const);
        const outcome = chance(0.3) ? { outcome: pick(["answered", "interrupted", "failed"] as const) } : {};
        return { kind, age: age(), entries: entries(), keys, settles, ...outcome };
      }
      case "compact":
        return { kind, age: age(), cut: unit(), isOld: chance(0.2) };
      case "note-health":
        return { kind, age: age(), ...(chance(0.7) ? { coolDownMs: pick([30_000, 60_000, 300_000]) } : {}) };
      case "begin":
        return { kind, age: age(), inputId: inputId() };
      case "end": {
        const outcome = pick(["answered", "interrupted", "failed"] as const);
        const last = chance(0.5) ? entries() : [];
        return { kind, age: age(), outcome, entries: last, releases: chance(0.85), isRepeat: chance(0.2) };
      }
      case "suspend":
        return { kind, age: age(), callCount: chance(0.7) ? 1 : 2, isStray: chance(0.1) };
      case "answer":
        return {
          kind,
          isSecond: chance(0.2),
          decision: pick(["allow", "allow", "deny"] as const),
          namesOther: chance(0.1),
        };
      case "withdraw":
        return { kind, inputId: inputId(), end: pick(["cancelled", "expired"] as const) };
      case "abandon":
        return { kind, actor: pick(actors) };
      case "request-stop":
        return { kind, hard: chance(0.5) };
      case "load":
        return { kind, limit: 1 + below(5), all: chance(0.5), isFromStart: chance(0.5) };
      case "search":
        return {
          kind,
          text: pick(["text of", "said", "step SAID", "ut", "output", "nothing such"]),
          limit: 1 + below(3),
        };
      case "set-title":
        return { kind, title: pick(["", "a title", `a  long\none ${"x".repeat(100)}`]) };
      case "list":
        return { kind, limit: 1 + below(3) };
      case "advance":
        return { kind, ms: pick([1, 100, 501, 2_000, 60_000]) };
      case "jump-wall":
        return { kind, ms: pick([-3_600_000, 3_600_000]) };
      case "delegate":
        return {
          kind,
          age: age(),
          fate: pick(["ends", "ends", "crashes", "is-withdrawn", "is-deleted", "waits"] as const),
        };
      case "answer-child":
      case "take-steers":
      case "release":
      case "settle-foreign":
        return { kind, age: age() };
      case "delete":
      case "transplant":
      case "reopen":
      case "reboot":
        return { kind };
    }
  };
  return Array.from({ length: stepCount }, () => ({
    ...action(pick(kinds)),
    session: chance(0.8) ? "session-1" : "session-2",
  }));
}
