import { describe, expect, it } from "vitest";
import { houseRules } from "../src/house-rules.ts";
import { findingsOf } from "./made-up-tree.ts";

describe("a made-up repository in which all is well", () => {
  it.each(houseRules.map((rule) => [rule.title, rule] as const))("passes: %s", (_title, rule) => {
    expect(findingsOf(rule)).toEqual([]);
  });
});

describe("the list of rules", () => {
  it("has no two rules with one title", () => {
    const titles = houseRules.map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
  });
});
