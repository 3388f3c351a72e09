import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backOffMs } from "../console/src/back-off.ts";
import { happeningsBetween, standingOf, waitText, worthAsking } from "../console/src/board.ts";
import type { RunningTurn } from "../console/src/gateway-json.ts";
import { placeOf, sessionHash } from "../console/src/place.ts";
import { prosePieces } from "../console/src/prose.ts";
import { shortcutOf } from "../console/src/shortcut.ts";
import { agoText, durationText } from "../console/src/time-text.ts";
import { visibleText } from "../console/src/visible-text.ts";

const turn = (rest: Partial<RunningTurn> = {}): RunningTurn => ({
  session: "s",
  turnId: "t",
  pid: 7,
  host: "h",
  state: "alive",
  ageMs: 0,
  fencingToken: 1,
  expiresInMs: 300_000,
  pendingCount: 0,
  stop: null,
  progress: { last: "model", ageMs: 100, waits: [], stopsInMs: 600_000 },
  ...rest,
});

describe("what is told", () => {
  it.each([
    [0, "0.0 s"],
    [-5, "0.0 s"],
    [9940, "9.9 s"],
    [9990, "10 s"],
    [99_400, "99 s"],
    [100_000, "2 min"],
    [5_940_000, "99 min"],
    [6_000_000, "2 h"],
    [172_800_000, "2 d"],
  ])("of %d ms is %s", (ms, text) => expect(durationText(ms)).toBe(text));

  it("of a moment is how long ago it was, and nothing where there is none", () => {
    expect(agoText("2026-01-01T00:00:00Z", Date.UTC(2026, 0, 1, 0, 5))).toBe("5 min");
    expect(agoText("2026-01-01T00:00:00Z", Date.UTC(2026, 0, 1))).toBe("now");
    expect(agoText("soon", 0)).toBe("");
  });

  it("of prose sets code apart, and loses and adds no letter", () => {
    expect(prosePieces("Use `a < b`, **now**:\n```ts\nlet x = `1`;\n```\nDone.")).toEqual([
      { kind: "words", text: "Use " },
      { kind: "code", text: "a < b" },
      { kind: "words", text: ", " },
      { kind: "strong", text: "now" },
      { kind: "words", text: ":" },
      { kind: "fence", text: "let x = `1`;", language: "ts" },
      { kind: "words", text: "Done." },
    ]);
    expect(prosePieces("```\nno end")).toEqual([{ kind: "fence", text: "no end" }]);
    expect(prosePieces("````\n```\n````")).toEqual([{ kind: "fence", text: "```" }]);
    const lettersOf = (text: string): string => text.replaceAll(/[^a-z<>&]/g, "");
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z<>&` *\n]{0,60}$/), (text) => {
        const shown = prosePieces(text).map((piece) => `${piece.language ?? ""}${piece.text}`);
        expect(lettersOf(shown.join(""))).toBe(lettersOf(text));
      }),
      { numRuns: 500 },
    );
  });

  it("of a wait is the one that excuses longest, and what is left of it", () => {
    const waits = [
      { kind: "model", name: "", endsInMs: 1000 },
      { kind: "tool", name: "shell", endsInMs: 60_000 },
    ];
    expect(waitText({ progress: { last: "x", ageMs: 0, stopsInMs: null, waits } }, 5000)).toBe("55 s · tool shell");
    expect(waitText({ progress: { last: "x", ageMs: 0, stopsInMs: null, waits } }, 70_000)).toBe(
      "too long · tool shell",
    );
    expect(waitText({ progress: null }, 0)).toBe("");
  });
});

it("nothing hides in what a call asks for", () => {
  expect(visibleText("rm \u202Etxt.exe\u2066 \u200B-rf\r\u0007\n\tend é 漢 😀")).toBe(
    "rm ⟨U+202E⟩txt.exe⟨U+2066⟩ ⟨U+200B⟩-rf⟨U+000D⟩⟨U+0007⟩\n\tend é 漢 😀",
  );
});

describe("a running turn", () => {
  const progress = (ageMs: number, stopsInMs: number | null): Pick<RunningTurn, "progress"> => ({
    progress: { last: "model", ageMs, waits: [], stopsInMs },
  });
  it.each([
    ["running", turn()],
    ["running", turn({ progress: null })],
    ["running", turn(progress(3000, 100))],
    ["silent", turn(progress(301_000, 299_000))],
    ["stalled", turn(progress(600_000, 0))],
    ["running", turn(progress(900_000, null))],
    ["stopping", turn({ stop: { hard: false, by: "cli" } })],
    ["asks", turn({ state: "asks", progress: null })],
    ["dead", turn({ state: "dead", stop: { hard: true, by: "cli" } })],
    ["unknown", turn({ state: "unknown", progress: null })],
  ] as const)("is %s", (standing, one) => expect(standingOf(one)).toBe(standing));

  it("is told of when it comes to stand badly, once", () => {
    const silent = turn(progress(301_000, 299_000));
    expect(happeningsBetween([turn()], [silent], 5)).toEqual([
      { atMs: 5, tone: "warn", text: "Silent for 5 min.", sessionId: "s" },
    ]);
    expect(happeningsBetween([silent], [silent], 5)).toEqual([]);
    expect(happeningsBetween([], [turn()], 5)).toEqual([]);
  });

  it("that is gone is asked about where it stood badly, and a few at most", () => {
    const stalled = Array.from({ length: 9 }, (_none, index) => turn({ turnId: `t${index}`, ...progress(9000, 0) }));
    expect(worthAsking([turn({ turnId: "fine" }), ...stalled], [], 5)).toHaveLength(5);
    expect(worthAsking([turn()], [])).toEqual([]);
    // The bound is short: between two looks its silence came to it.
    const short = turn(progress(3000, 2000));
    expect([standingOf(short), worthAsking([short], [])]).toEqual(["running", [short]]);
    expect(worthAsking([turn(progress(2000, 3000)), turn({ progress: null })], [])).toEqual([]);
  });
});

describe("an address", () => {
  it("names a session, whatever stands in its id", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/), (sessionId) => {
        expect(placeOf(sessionHash(sessionId))).toEqual({ kind: "session", sessionId });
      }),
    );
  });

  it.each(["", "#/", "#/s/", "#/s/a%2Fb", "#/s/%", "#/s/..", "#/s/<b>", "#/other"])("is the board: %s", (hash) =>
    expect(placeOf(hash)).toEqual({ kind: "board" }),
  );
});

describe("a key", () => {
  const key = (pressed: string, rest: object = {}): Parameters<typeof shortcutOf>[0] => ({
    key: pressed,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    isComposing: false,
    ...rest,
  });
  it("does something where nobody writes, and alone", () => {
    expect(shortcutOf(key("n"), false)).toBe("n");
    expect(shortcutOf(key("S"), false)).toBe("S");
    expect(shortcutOf(key("n"), true)).toBeUndefined();
    expect(shortcutOf(key("n", { ctrlKey: true }), false)).toBeUndefined();
    expect(shortcutOf(key("n", { metaKey: true }), false)).toBeUndefined();
    expect(shortcutOf(key("x"), false)).toBeUndefined();
  });
});

it("attempts come later and later, within a bound, and never all at once", () => {
  fc.assert(
    fc.property(fc.nat(2000), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, unit) => {
      const ms = backOffMs(attempt, unit);
      expect(ms).toBeGreaterThanOrEqual(375);
      expect(ms).toBeLessThanOrEqual(18_750);
    }),
  );
  expect(backOffMs(3, 0.5)).toBe(4000);
  expect(backOffMs(1, 0)).toBeLessThan(backOffMs(1, 0.9));
});
