import { describe, expect, it } from "vitest";
import { median, percentile, ratioOfRounds } from "../src/statistics.ts";

describe("percentile", () => {
  it("is one of the values, by nearest rank, whatever their order", () => {
    const values = [40, 10, 30, 20];
    expect([0, 0.25, 0.26, 0.5, 0.75, 0.99, 1].map((share) => percentile(values, share))).toEqual([
      10, 10, 20, 20, 30, 40, 40,
    ]);
    expect(values).toEqual([40, 10, 30, 20]);
  });

  it("compares numbers as numbers", () => {
    expect(percentile([100, 9, 80], 0)).toBe(9);
  });

  it("of one value is that value; of none, and of a share that is none, it is refused", () => {
    expect(percentile([7], 0.5)).toBe(7);
    expect(() => percentile([], 0.5)).toThrow("no values");
    expect(() => percentile([1], 1.5)).toThrow("1.5");
  });
});

describe("median", () => {
  it("is the middle value, or the mean of the two in the middle", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(() => median([])).toThrow("no values");
  });
});

describe("ratioOfRounds", () => {
  it("compares within rounds, so a machine that is slower for a while changes nothing", () => {
    expect(ratioOfRounds([2, 20, 2], [1, 10, 1])).toBe(2);
  });

  it("control: the ratio of the medians is falsified by the same slow rounds", () => {
    const [ours, raw] = [
      [2, 2, 2, 200],
      [1, 100, 100, 100],
    ];
    expect(ratioOfRounds(ours ?? [], raw ?? [])).toBeGreaterThan(0.5 / 100);
    expect(median(ours ?? []) / median(raw ?? [])).toBe(0.02);
  });

  it("refuses rounds that are not paired", () => {
    expect(() => ratioOfRounds([1, 2], [1])).toThrow("2 against 1");
  });
});
