import type { Benchmark, Case, Effort } from "../benchmark.ts";
import { HttpTarget } from "../http-target.ts";
import type { HttpServerKind, OpenEvents } from "../http-target.ts";
import { nowNs } from "../stopwatch.ts";

const followerCount = 20;

async function openMany(target: HttpTarget, count: number): Promise<readonly OpenEvents[]> {
  const open: OpenEvents[] = [];
  for (let index = 0; index < count; index++) open.push(await target.openEvents());
  return open;
}

async function untilTold(streams: readonly OpenEvents[], eventCount: number): Promise<void> {
  while (streams.some((stream) => stream.eventCount() < eventCount))
    await new Promise((resolve) => setTimeout(resolve, 2));
}

/** What one event costs the server for each who follows, and what a stream takes that is open and silent. */
async function caseOf(kind: HttpServerKind, role: Case["role"], { isQuick }: Effort): Promise<Case> {
  const target = await HttpTarget.start(kind);
  const eventCount = isQuick ? 300 : 1_000;
  const streamCounts = isQuick ? [500] : [500, 2_000];
  const measureEvents = async (): Promise<Record<string, readonly number[]>> => {
    const followers = await openMany(target, followerCount);
    const before = await target.usage();
    const beganNs = nowNs();
    await target.stream(eventCount);
    await untilTold(followers, eventCount);
    const tookUs = (nowNs() - beganNs) / 1_000;
    const after = await target.usage();
    for (const follower of followers) follower.close();
    const count = eventCount * followerCount;
    return { "CPU an event": [(after.cpuUs - before.cpuUs) / count], "time an event": [tookUs / count] };
  };
  const measureMemory = async (streamCount: number): Promise<Record<string, readonly number[]>> => {
    const before = await target.usage();
    const streams = await openMany(target, streamCount);
    const after = await target.usage();
    for (const stream of streams) stream.close();
    const kilobytes = (bytes: number): readonly number[] => [bytes / streamCount / 1_024];
    return { [`heap of one of ${streamCount}`]: kilobytes(after.heapBytes - before.heapBytes) };
  };
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    const events = await measureEvents();
    const memory: Record<string, readonly number[]> = {};
    for (const streamCount of streamCounts) Object.assign(memory, await measureMemory(streamCount));
    return { ...events, ...memory };
  };
  await measure();
  return { name: kind, role, measure, close: () => target.close() };
}

const limit = "node:http";

export const sse: Benchmark = {
  name: "sse",
  title: "a turn's events to 20 followers, one in each turn of the event loop; streams that are open and silent",
  metrics: [
    { name: "CPU an event", unit: "µs", limit },
    { name: "time an event", unit: "µs", limit },
    { name: "heap of one of 500", unit: "KB", limit },
    { name: "heap of one of 2000", unit: "KB", limit },
  ],
  goals: [{ of: "gateway", metric: "CPU an event", against: { name: limit }, atMost: 1.3, isCpuBound: true }],
  roundCount: ({ isQuick }) => (isQuick ? 3 : 7),
  open: async (_folder, effort) => [
    await caseOf(limit, "limit", effort),
    await caseOf("fastify", "peer", effort),
    await caseOf("gateway", "ours", effort),
  ],
};
