import { claim, claimPeriodMs, firstWaiter, nowOf, standingOf } from "@turnkeeper/state-store";
import type { BootInstant, PendingInput, QueuedInput } from "@turnkeeper/state-store";
import { virtualHost } from "@turnkeeper/kernel/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const now: BootInstant = { bootId: "boot-1", bootMs: 100_000 };
const runners = ["a", "b", "c", "d"] as const;

function inputOf(seq: number, runnerId: string | undefined): PendingInput {
  const facts = { sessionId: "session-1", inputId: `input-${seq}`, seq, text: "", digest: "", offeredAtMs: 0 };
  const input = { ...facts, delivery: "turn", state: "pending" } as const;
  if (runnerId === undefined) return input;
  return { ...input, runner: { runnerId, instanceId: runnerId, host: "host-1", bootId: "boot-1", pid: 1 } };
}

type Waiting = "not woken" | "woken" | "asleep" | "woken in an earlier boot";

function queuedOf(seq: number, runnerId: string | undefined, waiting: Waiting = "not woken"): QueuedInput {
  const input = inputOf(seq, runnerId);
  switch (waiting) {
    case "not woken":
      return { input };
    case "woken":
      return { input, wokenAt: { ...now, bootMs: now.bootMs - claimPeriodMs } };
    case "asleep":
      return { input, wokenAt: { ...now, bootMs: now.bootMs - claimPeriodMs - 1 } };
    case "woken in an earlier boot":
      return { input, wokenAt: { bootId: "boot-0", bootMs: 0 } };
  }
}

const waits: readonly Waiting[] = ["not woken", "woken", "asleep", "woken in an earlier boot"];
const queues: fc.Arbitrary<readonly QueuedInput[]> = fc
  .array(
    fc.record({ runner: fc.option(fc.constantFrom(...runners), { nil: undefined }), wait: fc.constantFrom(...waits) }),
    {
      maxLength: 8,
    },
  )
  .map((rows) =>
    rows.map(({ runner, wait }, index) => queuedOf(index + 1, runner, runner === undefined ? "not woken" : wait)),
  );

const isAsleep = ({ wokenAt }: QueuedInput): boolean =>
  wokenAt?.bootId === now.bootId && now.bootMs - wokenAt.bootMs > claimPeriodMs;
const runnerOf = ({ input }: QueuedInput): string | undefined => input.runner?.runnerId;

describe("who gets a free session", () => {
  test("nobody is overtaken: whoever takes has no live waiter of another before its own first input", () => {
    const met = { take: 0, behind: 0, "nothing-to-run": 0, orphan: 0 };
    fc.assert(
      fc.property(queues, fc.constantFrom(...runners), (queue, runnerId) => {
        const answer = claim(queue, now, runnerId);
        met[answer.kind]++;
        const own = queue.find((queued) => runnerOf(queued) === runnerId);
        const ahead = queue.filter(
          (queued) =>
            queued.input.runner !== undefined &&
            runnerOf(queued) !== runnerId &&
            !isAsleep(queued) &&
            queued.input.seq < (own?.input.seq ?? Infinity),
        );
        if (answer.kind === "behind") expect(answer.waiter).toBe(ahead[0]);
        else expect(ahead).toEqual([]);
        if (answer.kind !== "take") return;
        if (answer.input.runner === undefined) met.orphan++;
        // What it takes is its own or nobody's, and the oldest of these.
        const runnable = queue.filter((queued) => runnerOf(queued) === undefined || runnerOf(queued) === runnerId);
        expect(answer.input).toBe(runnable[0]?.input);
      }),
      { numRuns: 2_000 },
    );
    expect(Object.entries(met).filter(([, count]) => count <= 50)).toEqual([]);
  });

  test("somebody may always go on: with an input pending, a live waiter or anybody at all is let in", () => {
    fc.assert(
      fc.property(queues, (queue) => {
        if (queue.length === 0) return;
        const takers = [...runners, "newcomer"].filter((runnerId) => claim(queue, now, runnerId).kind === "take");
        expect(takers).not.toEqual([]);
        const head = firstWaiter(queue, now);
        if (head) expect(takers).toContain(runnerOf(head));
      }),
      { numRuns: 1_000 },
    );
  });

  test("orphans never starve: each is taken after as many turns as inputs were before it, though newcomers keep coming", () => {
    fc.assert(
      fc.property(queues, fc.infiniteStream(fc.constantFrom(...runners)), (start, comers) => {
        let queue: readonly QueuedInput[] = start;
        let lastSeq = start.length;
        const taken: number[] = [];
        for (let turn = 0; turn < start.length; turn++) {
          const head = firstWaiter(queue, now);
          const runnerId = head ? (runnerOf(head) ?? "newcomer") : "newcomer";
          const answer = claim(queue, now, runnerId);
          if (answer.kind !== "take") break;
          taken.push(answer.input.seq);
          // One leaves and one comes: the queue never gets shorter.
          queue = [...queue.filter(({ input }) => input !== answer.input), queuedOf(++lastSeq, comers.next().value)];
        }
        const orphans = start.filter((queued) => runnerOf(queued) === undefined).map(({ input }) => input.seq);
        for (const seq of orphans) expect(taken.slice(0, seq)).toContain(seq);
      }),
      { numRuns: 1_000 },
    );
  });

  test("a sleeper is passed over, by the next waiter and by a newcomer with an orphan to run, and keeps its input", () => {
    const queue = [queuedOf(1, "a", "asleep"), queuedOf(2, "b"), queuedOf(3, undefined)];
    expect(claim(queue, now, "b")).toEqual({ kind: "take", input: queue[1]?.input });
    expect(claim(queue, now, "newcomer")).toEqual({ kind: "behind", waiter: queue[1] });
    const [sleeper, , orphan] = queue;
    expect(
      claim(
        queue.filter((queued) => runnerOf(queued) !== "b"),
        now,
        "newcomer",
      ),
    ).toEqual({
      kind: "take",
      input: orphan?.input,
    });
    expect(claim(queue, now, "a")).toEqual({ kind: "take", input: sleeper?.input });
  });

  test("a waiter that is late but first is still first when it asks itself", () => {
    const queue = [queuedOf(1, "a", "asleep"), queuedOf(2, "b", "woken")];
    expect(claim(queue, now, "a").kind).toBe("take");
  });

  test("a claim period ends after so many milliseconds of this boot, and never by a time of another", () => {
    const head = (wokenAt: BootInstant) => firstWaiter([{ input: inputOf(1, "a"), wokenAt }], now);
    expect(head({ ...now, bootMs: now.bootMs - claimPeriodMs })).toBeDefined();
    expect(head({ ...now, bootMs: now.bootMs - claimPeriodMs - 1 })).toBeUndefined();
    expect(head({ bootId: "boot-0", bootMs: 0 })).toBeDefined();
  });

  test("with nothing pending there is nothing to run", () => {
    expect(claim([], now, "a")).toEqual({ kind: "nothing-to-run" });
    expect(firstWaiter([], now)).toBeUndefined();
    expect(claim([queuedOf(1, "a", "asleep")], now, "b")).toEqual({ kind: "nothing-to-run" });
  });
});

describe("the standing of a lease", () => {
  test("is live while time is left, by the clock of its own boot", () => {
    fc.assert(
      fc.property(fc.integer({ min: -10_000, max: 10_000 }), fc.boolean(), (leftMs, isOtherBoot) => {
        const expires = { bootId: isOtherBoot ? "boot-0" : now.bootId, bootMs: now.bootMs + leftMs };
        const { standing, expiresInMs } = standingOf(expires, now);
        expect(standing).toBe(isOtherBoot ? "other-boot" : leftMs > 0 ? "live" : "expired");
        expect(expiresInMs).toBe(leftMs);
      }),
    );
  });

  test("is judged on boot time: a wall clock has no say in it", () => {
    const host = virtualHost();
    const before = nowOf(host.clock);
    host.jumpWall(86_400_000);
    expect(nowOf(host.clock)).toEqual(before);
    host.suspend(1_000);
    expect(nowOf(host.clock)).toEqual({ ...before, bootMs: before.bootMs + 1_000 });
  });
});
