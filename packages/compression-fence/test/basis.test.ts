import { virtualHost } from "@turnkeeper/kernel/testing";
import { describe, expect, it } from "vitest";
import { createCompressionFence, replaceWithSummary } from "@turnkeeper/compression-fence";
import type { CompressionFence } from "@turnkeeper/compression-fence";
import { createTranscript, deferred } from "./transcript.ts";
import type { Basis, Transcript } from "./transcript.ts";

type Compact = (
  fence: CompressionFence,
  transcript: Transcript,
  summarise: (basis: Basis) => Promise<string>,
) => Promise<unknown>;

const throughTheFence: Compact = (fence, transcript, summarise) =>
  replaceWithSummary(fence, {
    basis: transcript.basis(),
    summarise,
    apply: (basis, summary) => transcript.apply(basis, summary),
  });

/** The tempting order: summarise first, look up what there is to replace when the summary has come. */
const withTheBasisReadLate: Compact = async (_fence, transcript, summarise) => {
  const summary = await summarise(transcript.basis());
  return transcript.apply(transcript.basis(), summary);
};

/** Two entries are summarised; a third is appended while the model writes. */
async function appendWhileSummarising(compact: Compact): Promise<readonly string[]> {
  const host = virtualHost();
  const transcript = createTranscript();
  transcript.append("a");
  transcript.append("b");
  const written = deferred();
  const done = compact(createCompressionFence({ host }), transcript, async (basis) => {
    const text = transcript.textOf(basis);
    await written.promise;
    return text;
  });
  transcript.append("c");
  written.resolve();
  await done;
  expect(host.pendingTimerCount()).toBe(0);
  return transcript.active();
}

describe("the basis of a summary", () => {
  it("COMP-1: a summary replaces exactly what it was made from; what was appended meanwhile stays, in order, once", async () => {
    expect(await appendWhileSummarising(throughTheFence)).toEqual(["(a+b)", "c"]);
  });

  it("COMP-1 control: without the basis carried from before the summary it fails: an entry nobody summarised is gone", async () => {
    expect(await appendWhileSummarising(withTheBasisReadLate)).toEqual(["(a+b)"]);
  });

  it("a basis that is computed is computed once: what was summarised is what is replaced", async () => {
    let entryCount = 2;
    const applied = await replaceWithSummary(createCompressionFence({ host: virtualHost() }), {
      get basis() {
        return entryCount;
      },
      summarise: async (basis) => {
        entryCount = 3;
        return `summary of ${basis}`;
      },
      apply: async (basis, summary) => ({ kind: "applied", basis, summary }),
    });
    expect(applied).toEqual({ kind: "applied", basis: 2, summary: "summary of 2" });
  });

  it("a summary whose basis another compaction has replaced is not applied", async () => {
    const transcript = createTranscript();
    transcript.append("a");
    const fence = createCompressionFence({ host: virtualHost() });
    const slow = deferred<string>();
    const first = throughTheFence(fence, transcript, () => slow.promise);
    await throughTheFence(fence, transcript, async () => "quick");
    slow.resolve("slow");
    expect(await first).toEqual({ kind: "stale-basis" });
    expect(transcript.active()).toEqual(["(quick)"]);
    expect(fence.commitInFlight).toBe(false);
  });

  it("five compactions within one turn keep every entry of every segment", async () => {
    const transcript = createTranscript();
    const fence = createCompressionFence({ host: virtualHost() });
    for (const segment of [1, 2, 3, 4, 5]) {
      transcript.append(`m${segment}`);
      transcript.append(`n${segment}`);
      const result = await throughTheFence(fence, transcript, async (basis) => transcript.textOf(basis));
      expect(result).toEqual({ kind: "applied" });
    }
    const kept = transcript
      .active()
      .join("")
      .match(/[mn]\d/g);
    expect(kept).toEqual(["m1", "n1", "m2", "n2", "m3", "n3", "m4", "n4", "m5", "n5"]);
  });
});
