import { virtualHost } from "@turnkeeper/kernel/testing";
import { describe, expect, it } from "vitest";
import { createCompressionFence } from "@turnkeeper/compression-fence";
import type { Commit, CompressionFence } from "@turnkeeper/compression-fence";

type Barrier = Pick<CompressionFence, "begin" | "cancelPending" | "settled" | "commitInFlight">;
type Stop = (barrier: Barrier, mayPublish: () => boolean) => Promise<boolean>;

/** How a stop uses the fence: it waits without touching it, and cancels only once nothing can veto any more. */
const stopInOrder: Stop = async (barrier, mayPublish) => {
  await barrier.settled();
  if (!mayPublish()) return false;
  barrier.cancelPending();
  return true;
};

/** The historical bug: the fence is cancelled on the way to a verdict that may still be vetoed. */
const cancelFirst: Stop = async (barrier, mayPublish) => {
  barrier.cancelPending();
  await barrier.settled();
  return mayPublish();
};

const makeFence = (): CompressionFence => createCompressionFence({ host: virtualHost() });

/** A fence whose cancel does not look whether a commit runs, and whose commit writes in two steps. */
function tearableBarrier(): Barrier & { isCancelled(): boolean } {
  let isCancelled = false;
  const commit: Commit = { finish: () => {}, [Symbol.dispose]: () => {} };
  return {
    begin: () => (isCancelled ? undefined : commit),
    cancelPending: () => void (isCancelled = true),
    settled: () => Promise.resolve(),
    commitInFlight: false,
    isCancelled: () => isCancelled,
  };
}

/** A commit of two writes, between which a committed stop arrives. Answers what was written. */
async function stopAmidCommit(barrier: Barrier, isCancelled: () => boolean): Promise<readonly string[]> {
  const written: string[] = [];
  const commit = barrier.begin();
  written.push("archive");
  const stopped = stopInOrder(barrier, () => true);
  await Promise.resolve();
  if (!isCancelled()) written.push("summary");
  commit?.finish();
  await stopped;
  return written;
}

describe("a stop and a commit", () => {
  it("COMP-2: a vetoed stop leaves a pending commit free to begin", async () => {
    const fence = makeFence();
    expect(await stopInOrder(fence, () => false)).toBe(false);
    expect(fence.begin()).toBeDefined();
  });

  it("COMP-2 control: without the cancel behind the veto it fails: the vetoed stop has cancelled the commit", async () => {
    const fence = makeFence();
    expect(await cancelFirst(fence, () => false)).toBe(false);
    expect(fence.begin()).toBeUndefined();
  });

  it("COMP-2: a committed stop never tears a commit that runs", async () => {
    const fence = makeFence();
    const written = await stopAmidCommit(fence, () => fence.refusal === "cancelled");
    expect(written).toEqual(["archive", "summary"]);
    expect(fence.refusal).toBe("cancelled");
  });

  it("COMP-2 control: without the commit owning itself it fails: half of the commit is written", async () => {
    const barrier = tearableBarrier();
    const written = await stopAmidCommit({ ...barrier, settled: () => Promise.resolve() }, barrier.isCancelled);
    expect(written).toEqual(["archive"]);
  });

  it("a stop waits for the commit in flight and prevents the next", async () => {
    const fence = makeFence();
    const commit = fence.begin();
    let isStopped = false;
    const stopped = stopInOrder(fence, () => true).then((answer) => (isStopped = answer));
    await Promise.resolve();
    expect(isStopped).toBe(false);
    commit?.finish();
    await stopped;
    expect(fence.begin()).toBeUndefined();
  });

  it("a cancel before the commit keeps it from beginning", () => {
    const fence = makeFence();
    fence.cancelPending();
    expect(fence.begin()).toBeUndefined();
    expect(fence.refusal).toBe("cancelled");
  });

  it("a cancel during a commit passes it by: the next one is admitted", () => {
    const fence = makeFence();
    const commit = fence.begin();
    fence.cancelPending();
    expect(fence.commitInFlight).toBe(true);
    commit?.finish();
    expect(fence.begin()).toBeDefined();
  });

  it("a revocation before a commit keeps it from beginning", () => {
    const fence = makeFence();
    fence.revoke();
    expect(fence.begin()).toBeUndefined();
    expect(fence.refusal).toBe("revoked");
  });

  it("a revocation during a commit lets it finish and admits no other", async () => {
    const fence = makeFence();
    const commit = fence.begin();
    fence.revoke();
    fence.revoke();
    expect(fence.commitInFlight).toBe(true);
    const settled = fence.settled();
    commit?.finish();
    await settled;
    expect(fence.begin()).toBeUndefined();
    expect(fence.refusal).toBe("revoked");
  });
});
