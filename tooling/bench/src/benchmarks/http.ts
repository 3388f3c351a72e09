import { Pool } from "undici";
import type { Benchmark, Case, Effort } from "../benchmark.ts";
import { HttpTarget, httpToken } from "../http-target.ts";
import type { HttpServerKind } from "../http-target.ts";
import { nowNs } from "../stopwatch.ts";

const connectionCount = 8;
const path = "/v1/sessions/s/messages?limit=1";

async function caseOf(kind: HttpServerKind, role: Case["role"], { isQuick }: Effort): Promise<Case> {
  const target = await HttpTarget.start(kind);
  const pool = new Pool(target.url, { connections: connectionCount });
  const headers = { authorization: `Bearer ${httpToken}` };
  const once = async (): Promise<number> => {
    const beforeNs = nowNs();
    const { statusCode, body } = await pool.request({ path, method: "GET", headers });
    await body.text();
    if (statusCode !== 200) throw new Error(`${kind} answered ${statusCode}.`);
    return (nowNs() - beforeNs) / 1_000;
  };
  /** All connections busy at once, then each request alone. */
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    const each = isQuick ? 100 : 400;
    const before = await target.usage();
    const beganNs = nowNs();
    await Promise.all(
      Array.from({ length: connectionCount }, async () => {
        for (let index = 0; index < each; index++) await once();
      }),
    );
    const tookUs = (nowNs() - beganNs) / 1_000;
    const after = await target.usage();
    const requestCount = each * connectionCount;
    const alone: number[] = [];
    for (let index = 0; index < each; index++) alone.push(await once());
    return {
      CPU: [(after.cpuUs - before.cpuUs) / requestCount],
      "time at full load": [tookUs / requestCount],
      latency: alone,
    };
  };
  for (let index = 0; index < 3; index++) await measure();
  const close = async (): Promise<void> => {
    await pool.destroy();
    await target.close();
  };
  return { name: kind, role, measure, close };
}

export const http: Benchmark = {
  name: "http",
  title: "a GET that answers JSON, with its token: the gateway reads a message from a store in memory",
  metrics: [
    { name: "CPU", unit: "µs", limit: "node:http" },
    { name: "time at full load", unit: "µs", limit: "node:http" },
    { name: "latency", unit: "µs", limit: "node:http" },
  ],
  goals: [{ of: "gateway", metric: "CPU", against: { name: "node:http" }, atMost: 1.6, isCpuBound: true }],
  roundCount: ({ isQuick }) => (isQuick ? 5 : 9),
  open: async (_folder, effort) => [
    await caseOf("node:http", "limit", effort),
    await caseOf("fastify", "peer", effort),
    await caseOf("gateway", "ours", effort),
  ],
};
