import { Pool } from "undici";
import type { Benchmark, Case, Effort } from "../benchmark.ts";
import { HttpTarget, httpToken } from "../http-target.ts";
import type { HttpServerKind } from "../http-target.ts";
import { nowNs } from "../stopwatch.ts";

const connectionCount = 8;
const get = { path: "/v1/sessions/s/messages?limit=1", method: "GET" } as const;
/** An input that was run already: what is left is the request, its body and its schemas, and a look at how it ended. */
const post = { path: "/v1/sessions/s/turns", method: "POST", body: '{"input":"Go on.","inputId":"one"}' } as const;

async function caseOf(kind: HttpServerKind, role: Case["role"], { isQuick }: Effort): Promise<Case> {
  const target = await HttpTarget.start(kind);
  const pool = new Pool(target.url, { connections: connectionCount });
  const headers = { authorization: `Bearer ${httpToken}`, "content-type": "application/json" };
  const each = isQuick ? 100 : 400;
  const once = async (sent: typeof get | typeof post): Promise<number> => {
    const beforeNs = nowNs();
    const { statusCode, body } = await pool.request({ ...sent, headers });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${kind} answered ${statusCode}: ${text}`);
    return (nowNs() - beforeNs) / 1_000;
  };
  /** All connections busy at once. */
  const load = async (sent: typeof get | typeof post): Promise<{ readonly cpuUs: number; readonly tookUs: number }> => {
    const before = await target.usage();
    const beganNs = nowNs();
    await Promise.all(
      Array.from({ length: connectionCount }, async () => {
        for (let index = 0; index < each; index++) await once(sent);
      }),
    );
    const tookUs = (nowNs() - beganNs) / 1_000;
    const after = await target.usage();
    const requestCount = each * connectionCount;
    return { cpuUs: (after.cpuUs - before.cpuUs) / requestCount, tookUs: tookUs / requestCount };
  };
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    const { cpuUs, tookUs } = await load(get);
    const alone: number[] = [];
    for (let index = 0; index < each; index++) alone.push(await once(get));
    const posted = await load(post);
    return { CPU: [cpuUs], "CPU of a POST": [posted.cpuUs], "time at full load": [tookUs], latency: alone };
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
  title:
    "a GET that answers JSON, with its token: the gateway reads a message from a store in memory; a POST of an input that was run",
  metrics: [
    { name: "CPU", unit: "µs", limit: "node:http" },
    { name: "CPU of a POST", unit: "µs", limit: "node:http" },
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
