import { describe, expect, it } from "vitest";
import { EventQueue } from "../src/event-queue.ts";

const never = (): undefined => undefined;

describe("the queue of a turn's events", () => {
  it("loses nothing, wherever between two steps of its reader the last events and the end come", async () => {
    for (let delay = 0; delay < 12; delay++) {
      const queue = new EventQueue<string>(never);
      const read: string[] = [];
      const reading = (async () => {
        for await (const event of queue) read.push(event);
      })();
      queue.push("a");
      for (let tick = 0; tick < delay; tick++) await Promise.resolve();
      queue.push("b");
      queue.push("c");
      queue.close();
      await reading;
      expect(read.join("")).toBe("abc");
    }
  });

  it("joins what waits where it may be joined, in order", async () => {
    const queue = new EventQueue<string>((left, right) =>
      left.startsWith("t") && right.startsWith("t") ? left + right.slice(1) : undefined,
    );
    for (const event of ["t1", "t2", "x", "t3", "t4"]) queue.push(event);
    queue.close();
    const read: string[] = [];
    for await (const event of queue) read.push(event);
    expect(read).toEqual(["t12", "x", "t34"]);
  });

  it("is read once", async () => {
    const queue = new EventQueue<string>(never);
    queue.close();
    for await (const _event of queue) expect.unreachable();
    await expect(queue[Symbol.asyncIterator]().next()).rejects.toThrow(/read once/);
  });

  it("answers reads that come before their events, in the order of the reads, and those that are left at the end", async () => {
    const queue = new EventQueue<string>(never);
    const reader = queue[Symbol.asyncIterator]();
    const reads = [reader.next(), reader.next(), reader.next()];
    queue.push("a");
    queue.push("b");
    queue.close();
    expect(await Promise.all(reads)).toEqual([
      { done: false, value: "a" },
      { done: false, value: "b" },
      { done: true, value: undefined },
    ]);
  });

  it("keeps nothing once its reader has left", async () => {
    const queue = new EventQueue<string>(never);
    queue.push("a");
    queue.push("b");
    for await (const _event of queue) break;
    queue.push("c");
    await expect(queue[Symbol.asyncIterator]().next()).rejects.toThrow(/read once/);
  });
});
