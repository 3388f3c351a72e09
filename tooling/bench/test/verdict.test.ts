import { describe, expect, it } from "vitest";
import type { Benchmark, Samples } from "../src/benchmark.ts";
import type { Goal } from "../src/goal.ts";
import type { Measured, Measurement } from "../src/measurement.ts";
import { measure } from "../src/measurement.ts";
import { reportOf } from "../src/report.ts";
import { rowsOf, verdictsOf } from "../src/verdict.ts";

function benchmarkOf(goals: readonly Goal[], open: Benchmark["open"] = async () => []): Benchmark {
  const metrics = ["cost", "other"].map((name) => ({ name, unit: "µs", limit: "raw" }));
  return { name: "made-up", title: "two cases", metrics, goals, roundCount: () => 3, open };
}

function measured(name: string, role: Measured["role"], costs: readonly (readonly number[])[]): Measured {
  return { name, role, rounds: costs.map((cost): Samples => ({ cost })) };
}

function measurementOf(...goals: readonly Goal[]): Measurement {
  return {
    benchmark: benchmarkOf(goals),
    cases: [
      measured("raw", "limit", [[1], [10], [1]]),
      measured("ours", "ours", [
        [3, 3, 90],
        [30, 30, 30],
        [3, 3, 3],
      ]),
    ],
    skipped: [{ name: "peer", skipped: "not there" }],
  };
}

describe("verdictsOf", () => {
  const goal: Goal = { of: "ours", metric: "cost", against: { name: "raw" }, atMost: 2 };

  it("misses a goal by the p50 of each round against the same round of the other case", () => {
    expect(verdictsOf(measurementOf(goal))).toEqual([{ goal, value: 3, isMet: false }]);
  });

  it("meets it exactly at its bound, and with slack up to as many times that", () => {
    const [exact] = verdictsOf(measurementOf({ ...goal, atMost: 3 }));
    expect(exact?.isMet).toBe(true);
    expect(verdictsOf(measurementOf(goal), 1.5)[0]?.isMet).toBe(true);
    expect(verdictsOf(measurementOf(goal), 1.4)[0]?.isMet).toBe(false);
  });

  it("takes p99 and max over all rounds, and plain numbers as they are", () => {
    const plain: Goal = { of: "ours", metric: "cost", statistic: "max", atMost: 89 };
    expect(verdictsOf(measurementOf(plain))[0]).toMatchObject({ value: 90, isMet: false });
    expect(verdictsOf(measurementOf({ ...goal, statistic: "p99" }))[0]?.value).toBe(9);
  });

  it("gives no verdict where a case or a metric is missing, rather than a good one", () => {
    const missing = verdictsOf(
      measurementOf({ ...goal, against: { name: "peer" } }, { ...goal, of: "peer" }, { ...goal, metric: "other" }),
    );
    expect(missing.map(({ isMet, value }) => [isMet, value])).toEqual(Array(3).fill([undefined, undefined]));
  });
});

describe("reportOf", () => {
  it("tells each case as a ratio to the limit, what was skipped and why, and every verdict", () => {
    const goal: Goal = { of: "ours", metric: "cost", against: { name: "raw" }, atMost: 2 };
    const text = reportOf(measurementOf(goal));
    expect(text).toMatch(/\| cost: ours +\| +3 µs \| +90 µs \| +3× \|/);
    expect(text).toContain("skipped: peer: not there");
    expect(text).toMatch(/at most 2× cost of raw +\| +3× \| MISSED/);
  });

  it("prints no ratio to a limit that was not measured", () => {
    const [row] = rowsOf({ ...measurementOf(), cases: [measured("ours", "ours", [[3]])] });
    expect(row?.ratio).toBeUndefined();
  });
});

describe("measure", () => {
  it("closes every case, also when one fails, and removes its files", async () => {
    const closed: string[] = [];
    let folderPath = "";
    const benchmark = benchmarkOf([], async (folder) => {
      folderPath = folder.path;
      return ["a", "b"].map((name) => ({
        name,
        role: "ours" as const,
        measure: async () => {
          if (name === "b") throw new Error("b failed");
          return { cost: [1] };
        },
        close: async () => void closed.push(name),
      }));
    });
    await expect(measure(benchmark, { isQuick: true })).rejects.toThrow("b failed");
    expect(closed).toEqual(["a", "b"]);
    const { existsSync } = await import("node:fs");
    expect(existsSync(folderPath)).toBe(false);
  });

  it("measures in interleaved rounds", async () => {
    const order: string[] = [];
    const benchmark = benchmarkOf([], async () =>
      ["a", "b", "c"].map((name) => ({
        name,
        role: "ours" as const,
        measure: async () => {
          order.push(name);
          return {};
        },
        close: async () => {},
      })),
    );
    await measure(benchmark, { isQuick: true });
    expect(order.join("")).toBe("abcbcacab");
  });
});
