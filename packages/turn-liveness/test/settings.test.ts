import * as fc from "fast-check";
import { resolveTurnLivenessSettings, turnLivenessDefaults } from "@turnkeeper/turn-liveness";
import type { TurnLivenessSettings } from "@turnkeeper/turn-liveness";
import { describe, expect, it } from "vitest";
import { makeScene, settings } from "./scene.ts";

interface Resolved {
  readonly settings: TurnLivenessSettings | "off";
  readonly warnings: readonly string[];
}

function resolve(configuration: unknown): Resolved {
  const warnings: string[] = [];
  return { settings: resolveTurnLivenessSettings(configuration, (message) => void warnings.push(message)), warnings };
}

const section = (turn_liveness: unknown): unknown => ({ agent: { turn_liveness } });
const quiet = (timeoutMs: number, pollMs: number): Resolved => ({ settings: { timeoutMs, pollMs }, warnings: [] });
const inf = Number.POSITIVE_INFINITY;

describe("the settings of the watch", () => {
  it("are 600 s and 15 s where the configuration says nothing", () => {
    for (const nothing of [undefined, null, {}, { agent: {} }, { agent: null }, section({}), section(null)]) {
      expect(resolve(nothing)).toEqual(quiet(600_000, 15_000));
    }
    expect(turnLivenessDefaults).toEqual({ timeoutMs: 600_000, pollMs: 15_000 });
  });

  it("are taken as numbers or numeric strings of seconds", () => {
    expect(resolve(section({ timeout_s: 30, poll_s: 5 }))).toEqual(quiet(30_000, 5000));
    expect(resolve(section({ timeout_s: "45", poll_s: " 2.5 " }))).toEqual(quiet(45_000, 2500));
    expect(resolve(section({ timeout_s: 1.5 }))).toEqual(quiet(1500, 15_000));
    expect(resolve(section({ poll_s: "1e1" }))).toEqual(quiet(600_000, 10_000));
  });

  it("are off at 0 and below, without a warning", () => {
    for (const timeout_s of [0, -1, "0", "-1"])
      expect(resolve(section({ timeout_s }))).toEqual({ settings: "off", warnings: [] });
  });

  it("never poll faster than every 10 ms", () => {
    expect(resolve(section({ poll_s: 0.001 }))).toEqual(quiet(600_000, 10));
  });

  it.each([
    ["timeout_s", "fast"],
    ["timeout_s", Number.NaN],
    ["timeout_s", inf],
    ["timeout_s", -inf],
    ["timeout_s", "inf"],
    ["timeout_s", ""],
    ["timeout_s", "0x10"],
    ["timeout_s", true],
    ["timeout_s", [30]],
    ["timeout_s", 1e306],
    ["poll_s", "often"],
    ["poll_s", Number.NaN],
    ["poll_s", inf],
    ["poll_s", 0],
    ["poll_s", -3],
    ["poll_s", {}],
  ])("use the default and warn once, naming the key: %s %j", (key, value) => {
    const { settings: resolved, warnings } = resolve(section({ [key]: value }));
    expect(resolved).toEqual(turnLivenessDefaults);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(`agent.turn_liveness.${key} must be`);
  });

  it("warn for each key that is wrong", () => {
    const { settings: resolved, warnings } = resolve(section({ timeout_s: "x", poll_s: "y" }));
    expect(resolved).toEqual(turnLivenessDefaults);
    expect(warnings).toHaveLength(2);
  });

  it("warn of a section that is no mapping, and ignore one further out", () => {
    for (const nonsense of ["nonsense", 5, [1], true]) {
      const { settings: resolved, warnings } = resolve(section(nonsense));
      expect(resolved).toEqual(turnLivenessDefaults);
      expect(warnings).toEqual([expect.stringContaining("agent.turn_liveness must be a mapping")]);
      expect(resolve({ agent: nonsense })).toEqual(quiet(600_000, 15_000));
      expect(resolve(nonsense)).toEqual(quiet(600_000, 15_000));
    }
  });

  it("are always usable, whatever the configuration holds", () => {
    const anything = fc.anything({ withBigInt: true, withNullPrototype: true, withDate: true, withTypedArray: true });
    fc.assert(
      fc.property(
        fc.oneof(anything, anything.map(section), fc.record({ timeout_s: anything, poll_s: anything }).map(section)),
        (configuration) => {
          const { settings: resolved } = resolve(configuration);
          if (resolved === "off") return true;
          return Object.values(resolved).every((ms: number) => Number.isFinite(ms) && ms > 0);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("that would judge at once or never are refused by the watch", () => {
    for (const bad of [0, -1, Number.NaN, inf]) {
      for (const key of ["timeoutMs", "pollMs"]) {
        const watch = (): unknown => makeScene({ settings: { ...settings, [key]: bad } });
        expect(watch).toThrow(expect.objectContaining({ code: "OPTION_INVALID", context: { option: key } }));
      }
    }
  });
});
