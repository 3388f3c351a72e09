import { describe, expect, it } from "vitest";
import { interleavedOrder } from "../src/rounds.ts";

describe("interleavedOrder", () => {
  it("runs every case once a round, each round begun one case later", () => {
    expect(interleavedOrder(["a", "b", "c"], 4).map((order) => order.join(""))).toEqual(["abc", "bca", "cab", "abc"]);
  });

  it("gives every case every place equally often in as many rounds as there are cases", () => {
    const orders = interleavedOrder([0, 1, 2, 3, 4], 5);
    const placesOf = (one: number): readonly number[] =>
      orders.map((order) => order.indexOf(one)).toSorted((left, right) => left - right);
    for (const one of [0, 1, 2, 3, 4]) expect(placesOf(one)).toEqual([0, 1, 2, 3, 4]);
  });

  it("has rounds without cases, and no rounds", () => {
    expect(interleavedOrder([], 2)).toEqual([[], []]);
    expect(interleavedOrder(["a"], 0)).toEqual([]);
  });
});
