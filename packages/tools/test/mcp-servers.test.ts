import { getEventListeners } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { ToolDefinition } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { expect, onTestFinished, test } from "vitest";
import { connectMcpServers } from "../src/mcp/index.ts";
import type { McpServerOptions, McpServers } from "../src/mcp/index.ts";
import { webServer } from "./web-server.ts";
import { hasProcessTable, isRunning, rejection, workbench } from "./workbench.ts";
import type { Workbench } from "./workbench.ts";

const script = fileURLToPath(new URL("mcp-server.mjs", import.meta.url));
const environment = { ...process.env, MY_SECRET: "sesame", MY_WISH: "granted" };

interface Stand {
  readonly bench: Workbench;
  readonly servers: McpServers;
  /** Lines that the server noted: its process ids and the methods it was asked. */
  noted(): Promise<readonly string[]>;
  processIds(): Promise<readonly number[]>;
  call(tool: string, input?: object): Promise<string>;
}

async function stand(way: string, options: McpServerOptions = {}): Promise<Stand> {
  const bench = await workbench();
  const log = path.join(bench.folder, "log");
  const servers = await connectMcpServers(
    { host: systemHost, environment },
    { test: { command: process.execPath, args: [script, way, log], ...options } },
  );
  onTestFinished(() => servers.close());
  const noted = async (): Promise<readonly string[]> =>
    existsSync(log) ? (await readFile(log, "utf8")).trim().split("\n") : [];
  return {
    bench,
    servers,
    noted,
    processIds: async () =>
      (await noted()).flatMap((line) => (line.startsWith("pid ") ? [Number(line.slice("pid ".length))] : [])),
    call: async (tool, input = {}) => {
      const found = servers.tools.find(({ name }) => name === `mcp__test__${tool}`) as ToolDefinition | undefined;
      if (!found) throw new Error(`There is no tool ${tool}: ${JSON.stringify(servers.failures)}`);
      const answer = await found.execute(input, bench.context);
      return typeof answer === "string" ? answer : JSON.stringify(answer);
    },
  };
}

test("the tools of a server are ours, under its name, and ask for approval", async () => {
  const { servers, call } = await stand("good");
  expect(servers.failures).toEqual([]);
  expect(servers.tools[0]).toMatchObject({
    name: "mcp__test__echo",
    description: "Answers its text.",
    needsApproval: true,
  });
  const schema = servers.tools[0]?.input["~standard"];
  expect(schema?.jsonSchema?.input({ target: "draft-07" })).toMatchObject({ type: "object" });
  expect((await schema?.validate([]))?.issues).toHaveLength(1);
  expect(await call("echo", { text: "hello" })).toBe("hello");
});

test("names fit every provider and are all different", async () => {
  const { servers } = await stand("good");
  const names = servers.tools.map(({ name }) => name);
  expect(names.every((name) => /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/.test(name))).toBe(true);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toContain("mcp__test__a_b");
});

test("what a call answers is text in bounds, whatever it is made of", async () => {
  const { call } = await stand("good", { answerBytesMax: 1_000 });
  expect(await call("parts")).toBe("a\uFFFDb\n[image, image/png, not shown]\n[x: file:///x]\ninside");
  const flood = await call("flood");
  expect(flood.length).toBeLessThan(1_100);
  expect(flood).toContain("bytes dropped");
});

test("a call that fails, or answers what is none, is an error of that call only", async () => {
  const { call } = await stand("good");
  expect(await rejection(call("fail"))).toMatchObject({ code: "MCP_FAILED", message: "It cannot be done." });
  expect(await rejection(call("nonsense"))).toMatchObject({ code: "MCP_FAILED" });
  expect(await call("echo", { text: "still here" })).toBe("still here");
});

test("a server gets no secret of our environment, but what is passed by name", async () => {
  const { call } = await stand("good", { passEnvironment: ["MY_WISH"], env: { OWN: "x" } });
  const seen = await call("env");
  expect(seen).not.toContain("sesame");
  expect(seen).toContain('"MY_WISH":"granted"');
  expect(seen).toContain('"OWN":"x"');
});

test("a stop ends the call at once and tells the server, which lives on", async () => {
  const { bench, call, noted, processIds } = await stand("good");
  const hanging = rejection(call("hang"));
  await expect.poll(noted).toContain("tools/call");
  bench.stop();
  expect(await hanging).toMatchObject({ code: "CALL_INTERRUPTED" });
  await expect.poll(noted).toContain("notifications/cancelled");
  expect(getEventListeners(bench.context.signal, "abort")).toEqual([]);
  expect((await processIds()).every(isRunning)).toBe(true);
});

test("a call that is not answered ends at its limit; a server that answers a ping is left alone", async () => {
  const { call, processIds } = await stand("good", { callTimeoutMs: 300 });
  expect((await rejection(call("hang"))).message).toContain("did not answer hang within 0.3 s");
  expect(await call("echo", { text: "x" })).toBe("x");
  expect(await processIds()).toHaveLength(1);
});

test("a call that reports progress may take longer than its limit", async () => {
  const { bench, call } = await stand("good", { callTimeoutMs: 400 });
  expect(await call("steps")).toBe("done");
  expect(bench.moveCount()).toBeGreaterThan(3);
});

test("a server that died in a call is started again by a later one, and not before its pause", async () => {
  const { call, processIds } = await stand("good");
  const error = await rejection(call("die"));
  expect(error).toMatchObject({
    code: "MCP_FAILED",
    message: 'The MCP server "test" failed at die: It ended. It said: out of luck. The call may have had its effect.',
  });
  const early = await rejection(call("echo", { text: "x" }));
  expect(early).toMatchObject({ code: "MCP_UNAVAILABLE" });
  expect(early.message).toContain("may be tried again in 1 s");
  await expect.poll(() => call("echo", { text: "again" }).catch(() => ""), { timeout: 10_000 }).toBe("again");
  expect(await processIds()).toHaveLength(2);
});

test.each([
  ["never answers", "mute", 'The MCP server "bad" did not start and name its tools within 1.5 s.'],
  ["dies at once", "dies", "cannot be used: It ended before it had started. It said: no licence."],
])("a server that %s is a failure within its bound, and keeps no other waiting", async (_name, way, told) => {
  const bench = await workbench();
  const servers = await connectMcpServers(
    { host: systemHost, environment },
    {
      bad: { command: process.execPath, args: [script, way], startTimeoutMs: 1_500 },
      missing: { command: "no-such-program-anywhere" },
      down: { url: "http://127.0.0.1:1/mcp" },
      good: { command: process.execPath, args: [script] },
    },
  );
  onTestFinished(() => servers.close());
  expect(Object.fromEntries(servers.failures.map(({ server, message }) => [server, message]))).toEqual({
    bad: expect.stringContaining(told),
    missing: expect.stringContaining('Its command "no-such-program-anywhere" does not exist; check its settings.'),
    down: expect.stringMatching(/could not be reached at 127\.0\.0\.1:1 \([\w ]+\); check that it runs, and its url\./),
  });
  const echo = servers.tools.find(({ name }) => name === "mcp__good__echo") as ToolDefinition;
  expect(await echo.execute({ text: "x" }, bench.context)).toBe("x");
});

test.runIf(hasProcessTable)("a stop while servers start ends the start, and all of them", async () => {
  const bench = await workbench();
  const logs = ["mute", "good"].map((way) => path.join(bench.folder, way));
  const [mute = "", good = ""] = logs;
  const settled: string[] = [];
  const stop = new AbortController();
  const starting = connectMcpServers(
    {
      host: systemHost,
      environment,
      stop: stop.signal,
      onSettled: (server) => {
        settled.push(server);
        if (server === "good") stop.abort();
      },
    },
    {
      mute: { command: process.execPath, args: [script, "mute", mute] },
      good: { command: process.execPath, args: [script, "good", good] },
    },
  );
  expect(await rejection(starting)).toMatchObject({ code: "CALL_INTERRUPTED" });
  expect(settled).toEqual(["good", "mute"]);
  for (const log of logs) {
    const started = existsSync(log) ? Number(/^pid (\d+)/.exec(await readFile(log, "utf8"))?.[1]) : undefined;
    if (started !== undefined) expect(isRunning(started)).toBe(false);
  }
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);
});

test("a server that prints other things to its stdout is understood all the same", async () => {
  const { call } = await stand("noisy");
  expect(await call("echo", { text: "x" })).toBe("x");
});

test("a tool that is not as the protocol wants it is left out, and takes no other with it", async () => {
  const { call, servers } = await stand("mixed");
  expect(await call("echo", { text: "x" })).toBe("x");
  expect(servers.failures.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^Its tool "bare" is left out: inputSchema: .+\.$/),
    ...[14, 15, 16].map((number) => expect.stringContaining(`Its tool number ${number} is left out: `)),
    "Another 6 of its tools are left out.",
  ]);
});

test("an answer that is not as the protocol wants it is told in one line", async () => {
  const { servers } = await stand("wrong");
  expect(servers.failures).toHaveLength(1);
  expect(servers.failures[0]?.message).toMatch(
    /^The MCP server "test" cannot be used: Its answer is not as the protocol wants it \(tools: .+\)\.$/,
  );
  const { call } = await stand("good");
  expect((await rejection(call("nonsense"))).message).toMatch(
    /^The MCP server "test" failed at nonsense: Its answer is not as the protocol wants it \(content: .+\)\.$/,
  );
});

test("lists of tools are bounded", async () => {
  const many = await stand("many");
  expect(many.servers.tools).toHaveLength(256);
  expect(many.servers.failures[0]?.message).toContain("Of its 1000 tools the first 256");
  const endless = await stand("endless");
  expect(endless.servers.tools).toHaveLength(20);
});

// Only Linux has the process table that this rule needs.
test.runIf(hasProcessTable)("closing ends the server and what it started, also what ignores TERM", async () => {
  const { servers, processIds } = await stand("stubborn");
  const ids = await processIds();
  expect(ids).toHaveLength(2);
  expect(ids.every(isRunning)).toBe(true);
  await Promise.all([servers.close(), servers.close()]);
  expect(ids.filter(isRunning)).toEqual([]);
});

test("after closing, a call fails at once and starts nothing", async () => {
  const { servers, call, processIds } = await stand("good");
  await servers.close();
  expect(await rejection(call("echo"))).toMatchObject({ code: "MCP_UNAVAILABLE" });
  const ids = await processIds();
  expect(ids.filter(isRunning)).toEqual([]);
  expect(ids).toHaveLength(1);
});

test("a server over HTTP is spoken to with its headers", async () => {
  const bench = await workbench();
  const web = await webServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      if (request.method !== "POST") return void response.writeHead(405).end();
      const { id, method, params } = JSON.parse(body) as {
        id?: number;
        method: string;
        params: { protocolVersion?: string; arguments?: { text: string } };
      };
      if (id === undefined) return void response.writeHead(202).end();
      const results: Readonly<Record<string, unknown>> = {
        initialize: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "web", version: "1" },
        },
        "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] },
        "tools/call": { content: [{ type: "text", text: params.arguments?.text }] },
      };
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] }));
    });
  });
  const servers = await connectMcpServers(
    { host: systemHost, environment },
    { web: { url: `http://${web.host}/mcp`, headers: { authorization: "Bearer token" } } },
  );
  onTestFinished(() => servers.close());
  expect(servers.failures).toEqual([]);
  expect(await (servers.tools[0] as ToolDefinition).execute({ text: "over HTTP" }, bench.context)).toBe("over HTTP");
  expect(web.requests.every(({ headers }) => headers.authorization === "Bearer token")).toBe(true);
});

test.each([
  [{ "a b": { command: "x" } }, "server name"],
  [{ a__b: { command: "x" } }, "server name"],
  [{ a: {} }, "a command or a url"],
  [{ a: { command: "x", url: "http://x/" } }, "a command or a url"],
  [{ a: { url: "file:///x" } }, "url"],
  [{ a: { command: "x", timeout: 1 } as object }, "timeout"],
])("settings such as %j are refused before anything starts", async (servers, told) => {
  const error = await rejection(connectMcpServers({ host: systemHost, environment }, servers));
  expect(error).toMatchObject({ code: "OPTION_INVALID" });
  expect(error.message).toContain(told);
});
