import assert from "node:assert/strict";
import { virtualHost } from "@turnkeeper/kernel/testing";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCompressionFence } from "@turnkeeper/compression-fence";
import type { Commit } from "@turnkeeper/compression-fence";

const step = fc.oneof(
  { weight: 5, arbitrary: fc.constant("begin" as const) },
  { weight: 5, arbitrary: fc.constant("finish" as const) },
  { weight: 1, arbitrary: fc.constant("finish-older" as const) },
  { weight: 2, arbitrary: fc.constant("cancel" as const) },
  { weight: 1, arbitrary: fc.constant("revoke" as const) },
  { weight: 2, arbitrary: fc.constant("pass-time" as const) },
);

describe("any walk over the fence", () => {
  it("admits one commit at a time, never ends one but by its finish, and never reopens", async () => {
    const reached = {
      admitted: 0,
      "refused while committing": 0,
      cancelled: 0,
      revoked: 0,
      deadline: 0,
      "cancel passed a commit by": 0,
    };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 24, size: "max" }), async (steps) => {
        const host = virtualHost();
        const fence = createCompressionFence({ host }, { deadlineMs: 100 });
        let running: Commit | undefined;
        let older: Commit | undefined;
        let isClosed = false;
        for (const each of steps) {
          const before = fence.refusal;
          if (each === "begin") {
            const commit = fence.begin();
            assert.equal(commit !== undefined, before === undefined);
            if (commit === undefined)
              reached[before === "committing" ? "refused while committing" : (before ?? "deadline")]++;
            else {
              reached.admitted++;
              running = commit;
            }
          } else if (each === "finish") {
            running?.finish();
            older = running ?? older;
            running = undefined;
          } else if (each === "finish-older") older?.finish();
          else if (each === "cancel") {
            if (running !== undefined) reached["cancel passed a commit by"]++;
            fence.cancelPending();
          } else if (each === "revoke") fence.revoke();
          else await host.advance(100);

          assert.equal(fence.commitInFlight, running !== undefined);
          const refusal = fence.refusal;
          if (isClosed) assert.notEqual(refusal, undefined);
          isClosed ||= refusal !== undefined && refusal !== "committing";
        }
        running?.finish();
        await fence.settled();
        assert.equal(host.pendingTimerCount(), 0);
      }),
      { numRuns: 300 },
    );
    expect(Object.entries(reached).filter(([, count]) => count < 10)).toEqual([]);
  });
});
