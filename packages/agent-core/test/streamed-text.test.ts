import { describe, expect, it } from "vitest";
import { StepReader } from "../src/step-reader.ts";

/** Microseconds of processor that reading so many deltas takes. */
function cost(reader: StepReader, count: number, from: number): number {
  const before = process.cpuUsage();
  for (let index = from; index < from + count; index++) {
    reader.read({ type: "text-delta", id: "t", delta: String(1000 + (index % 9000)) });
    // What the loop asks while an answer streams must not cost more the longer it is.
    if (index % 64 === 0 && !reader.hasAnswer && !reader.hasOutput) throw new Error("What was read is gone.");
  }
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

describe("streamed text", () => {
  it.each([
    ["200 KB", 50_000],
    ["2 MB", 500_000],
  ])("of %s costs its second half what its first half did, and is whole", (_size, count) => {
    cost(new StepReader(), count, 0);
    const reader = new StepReader();
    const first = cost(reader, count / 2, 0);
    const second = cost(reader, count / 2, count / 2);
    // A join for each delta makes it 3; collected garbage may make it somewhat more than 1.
    expect(second).toBeLessThan(2 * first + 10_000);
    const text = reader.text();
    expect(text).toHaveLength(4 * count);
    expect(text.slice(-4)).toBe(String(1000 + ((count - 1) % 9000)));
  });
});
