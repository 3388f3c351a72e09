import { expect, test } from "vitest";
import { DueQueue } from "../src/due-queue.ts";

const entryAt = (dueMs: number) => ({ dueMs, order: 0, position: -1 });

test("an entry taken out of the middle leaves the others in their order, also where the last one moves up", () => {
  const queue = new DueQueue<ReturnType<typeof entryAt>>(({ dueMs }) => dueMs);
  const entries = [1, 10, 2, 11, 12, 30, 5].map(entryAt);
  for (const entry of entries) queue.add(entry);
  // Its place is taken by 5, which comes from another branch and is due before the 10 above.
  for (const entry of entries) if (entry.dueMs === 11) queue.remove(entry);
  const order: number[] = [];
  for (let first = queue.first(); first; first = queue.first()) {
    order.push(first.dueMs);
    queue.remove(first);
  }
  expect(order).toEqual([1, 2, 5, 10, 12, 30]);
});
