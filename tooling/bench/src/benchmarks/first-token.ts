import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Pool } from "undici";
import type { Benchmark, Case } from "../benchmark.ts";
import { HttpTarget, httpToken } from "../http-target.ts";
import { nowNs } from "../stopwatch.ts";

const limit = "the provider itself";
const ours = "POST …/turns of the gateway";
const provider = fileURLToPath(new URL("../processes/stream-server.js", import.meta.url));

type Sent = Omit<Parameters<Pool["request"]>[0], "path"> & { readonly path: string };

/** From the request to the first word of the answer; the rest is read too, so that each answer has the server alone. */
async function firstWordUs(pool: Pool, sent: Sent, word: string): Promise<number> {
  const beforeNs = nowNs();
  const { statusCode, body } = await pool.request(sent);
  if (statusCode !== 200) throw new Error(`${sent.path} answered ${statusCode}: ${await body.text()}`);
  let firstUs: number | undefined;
  let text = "";
  for await (const chunk of body.setEncoding("utf8")) {
    text += String(chunk);
    if (firstUs === undefined && text.includes(word)) firstUs = (nowNs() - beforeNs) / 1_000;
  }
  if (firstUs === undefined) throw new Error(`${sent.path} said no word.`);
  return firstUs;
}

export const firstToken: Benchmark = {
  name: "first-token",
  title:
    "from a request to the first word: the provider on loopback, and a turn that asks it, with a store on the disk",
  metrics: [{ name: "first word", unit: "µs", limit }],
  goals: [],
  roundCount: ({ isQuick }) => (isQuick ? 5 : 9),
  open: async (folder, { isQuick }) => {
    const count = isQuick ? 20 : 50;
    const stub = fork(provider, ["20"]);
    const [port] = (await once(stub, "message")) as [number];
    const providerUrl = `http://127.0.0.1:${port}`;
    const target = await HttpTarget.start("gateway", `${providerUrl}/v1`, folder.fresh("state.db"));
    const direct = new Pool(providerUrl, { connections: 1 });
    const through = new Pool(target.url, { connections: 1 });
    let sessionCount = 0;
    const json = { "content-type": "application/json" };
    const asks: Readonly<Record<string, () => Promise<number>>> = {
      [limit]: () =>
        firstWordUs(direct, { path: "/v1/chat/completions", method: "POST", headers: json, body: "{}" }, "word 0"),
      [ours]: () => {
        const headers = { ...json, accept: "text/event-stream", authorization: `Bearer ${httpToken}` };
        const path = `/v1/sessions/f${sessionCount++}/turns`;
        return firstWordUs(through, { path, method: "POST", headers, body: '{"input":"Go on."}' }, "word 0");
      },
    };
    const caseOf = async (name: string, role: Case["role"], close: () => Promise<void>): Promise<Case> => {
      const measure = async (): Promise<Record<string, readonly number[]>> => {
        const values: number[] = [];
        for (let index = 0; index < count; index++) values.push((await asks[name]?.()) ?? Number.NaN);
        return { "first word": values };
      };
      await measure();
      return { name, role, measure, close };
    };
    const closeOurs = async (): Promise<void> => {
      await through.destroy();
      await target.close();
    };
    const closeDirect = async (): Promise<void> => {
      await direct.destroy();
      stub.disconnect();
    };
    return [await caseOf(limit, "limit", closeDirect), await caseOf(ours, "ours", closeOurs)];
  },
};
