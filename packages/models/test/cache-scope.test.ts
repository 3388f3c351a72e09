import { cacheScope } from "@turnkeeper/models";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const declared = { source: "gateway", key: "ticket-1", generation: 0 };
const own = cacheScope({ sessionId: "s" });

describe("a conversation's cache scope", () => {
  it("is a hash that tells nothing of its session or key", () => {
    expect(own).toMatch(/^tk_[0-9a-f]{24}$/);
    expect(cacheScope({ sessionId: "s", declared })).toMatch(/^tk_[0-9a-f]{24}$/);
  });

  it("is the inherited one, before the declared one, before the session's own", () => {
    const declaredScope = cacheScope({ sessionId: "s", declared });
    expect(cacheScope({ sessionId: "s", declared, inherited: "tk_parent" })).toBe("tk_parent");
    expect(cacheScope({ sessionId: "other", declared })).toBe(declaredScope);
    expect(declaredScope).not.toBe(own);
    expect(cacheScope({ sessionId: "other" })).not.toBe(own);
  });

  it("changes with each part of what was declared", () => {
    const parts = [
      declared,
      { ...declared, generation: 1 },
      { ...declared, key: "ticket-2" },
      { ...declared, source: "cli" },
    ];
    expect(new Set(parts.map((one) => cacheScope({ sessionId: "s", declared: one }))).size).toBe(4);
  });

  it.each([
    ["whose key is empty", { declared: { ...declared, key: "" } }],
    ["whose generation could not be read", { declared: { ...declared, generation: undefined } }],
    ["that is a fork", { declared, isFork: true }],
    ["of which nothing is stored", { declared, isStored: false }],
    ["that inherits nothing but an empty word", { inherited: "" }],
  ])("of a conversation %s is its own: what is not sure is not shared", (_name, facts) => {
    expect(cacheScope({ sessionId: "s", ...facts })).toBe(own);
  });

  it("is one for the same words and never one for different ones, however they are cut", () => {
    const words = fc.record({ source: fc.string(), key: fc.string({ minLength: 1 }), generation: fc.nat() });
    let differentCount = 0;
    fc.assert(
      fc.property(words, words, (left, right) => {
        const isSame = JSON.stringify(left) === JSON.stringify(right);
        if (!isSame) differentCount++;
        const scopes = [left, right].map((one) => cacheScope({ sessionId: "s", declared: one }));
        expect(scopes[0] === scopes[1]).toBe(isSame);
      }),
    );
    const moved = { source: "a", key: "bc", generation: 1 };
    expect(cacheScope({ sessionId: "s", declared: moved })).not.toBe(
      cacheScope({ sessionId: "s", declared: { source: "ab", key: "c", generation: 1 } }),
    );
    expect(differentCount).toBeGreaterThan(50);
  });
});
