import { canonicalJson, digestOf } from "@turnkeeper/state-store";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

/** The same value, with the keys of every object set in another order. */
function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, one]) => [key, reordered(one)]),
  );
}

/** The same value, with a key set to undefined in every object. */
function withAbsent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withAbsent);
  if (typeof value !== "object" || value === null) return value;
  return {
    ...Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withAbsent(one)])),
    [`absent ${Object.keys(value).length}`]: undefined,
  };
}

const json = fc.jsonValue({ maxDepth: 4 });

describe("canonical JSON", () => {
  test("is the same for every order in which keys were set", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(reordered(value))).toBe(canonicalJson(value));
      }),
    );
  });

  test("does not tell a key that is undefined from one that is absent", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(withAbsent(value))).toBe(canonicalJson(value));
      }),
    );
  });

  test("is JSON of the same value: other values have other digests, and a digest holds after storing and reading back", () => {
    fc.assert(
      fc.property(json, (value) => {
        const readBack: unknown = JSON.parse(JSON.stringify(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(readBack);
        expect(digestOf(readBack)).toBe(digestOf(value));
      }),
    );
  });

  test("sorts keys by their code units and keeps the order of lists", () => {
    expect(canonicalJson({ b: [2, 1, undefined], a: { Z: null, z: "\u2028" }, ä: 1 })).toBe(
      `{"a":{"Z":null,"z":"\u2028"},"b":[2,1,null],"ä":1}`,
    );
  });
});

describe("a digest", () => {
  test("is SHA-256 in hex, and one bit more is another", () => {
    expect(digestOf("")).toBe("12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126");
    expect(digestOf("a")).not.toBe(digestOf("b"));
    expect(digestOf({})).not.toBe(digestOf([]));
    expect(digestOf("1")).not.toBe(digestOf(1));
  });
});
