import { describe, expect, test } from "vitest";
import { encodeUlid } from "../src/ulid.ts";

const zeros = new Uint8Array(10);

describe("a ULID", () => {
  test("is written as its specification does", () => {
    // The time of the specification's own example, 01ARYZ6S41TSV4RRFFQ69G5FAV.
    expect(encodeUlid(1_469_918_176_385, zeros)).toBe("01ARYZ6S410000000000000000");
    expect(encodeUlid(0, zeros)).toBe("0".repeat(26));
    expect(encodeUlid(2 ** 48 - 1, new Uint8Array(10).fill(255))).toBe("7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    const bytes = Uint8Array.from([0xd6, 0x76, 0x4c, 0x61, 0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b]);
    expect(encodeUlid(1_469_918_176_385, bytes)).toBe("01ARYZ6S41TSV4RRFFQ69G5FAV");
  });

  test("sorts as text by its time, whatever chance adds", () => {
    const times = [0, 1, 31, 32, 1_023, 1_024, 2 ** 32 - 1, 2 ** 32, 1_800_000_000_000, 2 ** 48 - 1];
    const ids = times.map((timeMs, index) => encodeUlid(timeMs, new Uint8Array(10).fill(index % 2 === 0 ? 255 : 0)));
    expect(ids).toEqual(ids.toSorted());
    expect(new Set(ids.map((id) => id.length))).toEqual(new Set([26]));
  });

  test("says every bit of chance: each changes the text, and no two the same", () => {
    const ids = Array.from({ length: 80 }, (_, bit) => {
      const bytes = new Uint8Array(10);
      bytes[bit >> 3] = 1 << (bit & 7);
      return encodeUlid(1, bytes);
    });
    expect(new Set([...ids, encodeUlid(1, zeros)]).size).toBe(81);
  });

  test("drops the fraction of a millisecond", () => {
    expect(encodeUlid(1_000.9, zeros)).toBe(encodeUlid(1_000, zeros));
  });
});
