import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { eventsOf, makeHome, runCli, startCli } from "./outside/built-cli.ts";
import { isAlive } from "./outside/life.ts";
import { compatibleConfig, openAiCall, openAiText, serveModel } from "./outside/model-server.ts";

const program = JSON.stringify([fileURLToPath(new URL("outside/mcp-server.mjs", import.meta.url))]);
const node = JSON.stringify(process.execPath);

it("an MCP server's tools are offered, run under the rules, without our keys, and end with the command", async () => {
  const model = await serveModel(openAiCall("mcp__test__echo", '{"text":"hello"}'), openAiText("Done."));
  const servers = `mcp_servers: { test: { command: ${node}, args: ${program} }, broken: { command: no-such-program } }\n`;
  const rules = 'tools: { approval: { "mcp__test__*": allow } }\n';
  const home = makeHome(`${compatibleConfig(model)}${servers}${rules}`);
  const result = await runCli(["run", "go", "--json"], { home, env: { OPENAI_API_KEY: "secret-key-1234" } });
  expect(eventsOf(result.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({
    name: "mcp__test__echo",
    ok: true,
    output: "hello, key=undefined",
  });
  expect(result.code).toBe(0);
  expect(result.stderr).toMatch(/MCP server broken: .*cannot be used/);
  expect(isAlive(Number(readFileSync(path.join(home, "server.pid"), "utf8")))).toBe(false);
});

it("a wrong server in the settings is told and left out", async () => {
  const model = await serveModel(openAiText("Hello."));
  const servers = "mcp_servers: { a: { command: x, url: 'http://127.0.0.1:1/' }, b__c: { command: x } }\n";
  const result = await runCli(["run", "go"], { home: makeHome(`${compatibleConfig(model)}${servers}`) });
  expect(result.code).toBe(0);
  expect(result.stderr).toMatch(/mcp_servers\.a: expected a command or a url, and not both/);
  expect(result.stderr).toMatch(/mcp_servers\.b__c/);
});

describe("a server that does not start", () => {
  it.each([
    { args: ["run", "go"], signal: "SIGINT", code: 130, told: "cancelled (user-stop)" },
    { args: ["chat"], signal: "SIGTERM", code: 130, told: "" },
    { args: ["gateway", "--port", "0"], signal: "SIGTERM", code: 0, told: "" },
  ] as const)(
    "is told of, and keeps nobody from stopping $args.0",
    async ({ args, signal, code, told }) => {
      const server = `mute: { command: ${node}, args: [${program.slice(1, -1)}, mute], start_timeout_s: 600 }`;
      const home = makeHome(`model: demo/echo\nmcp_servers: { ${server} }\ngateway: { tools: ["mcp__*"] }\n`);
      const cli = startCli(args, { home, stdin: null });
      await cli.sees(/Waiting for MCP servers to start: mute\./, "stderr");
      const file = path.join(home, "server.pid");
      await expect.poll(() => existsSync(file) && readFileSync(file, "utf8"), { timeout: 60_000 }).toMatch(/^\d+$/);
      cli.child.kill(signal);
      const ended = await cli.ended;
      expect(ended).toMatchObject({ code, signal: null, stderr: expect.stringContaining(told) });
      expect(isAlive(Number(readFileSync(file, "utf8")))).toBe(false);
    },
    120_000,
  );
});
