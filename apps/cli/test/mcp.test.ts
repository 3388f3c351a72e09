import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { eventsOf, makeHome, runCli } from "./outside/built-cli.ts";
import { compatibleConfig, openAiCall, openAiText, serveModel } from "./outside/model-server.ts";

const program = JSON.stringify([fileURLToPath(new URL("outside/mcp-server.mjs", import.meta.url))]);
const node = JSON.stringify(process.execPath);

function isRunning(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

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
  expect(isRunning(Number(readFileSync(path.join(home, "server.pid"), "utf8")))).toBe(false);
});

it("a wrong server in the settings is told and left out", async () => {
  const model = await serveModel(openAiText("Hello."));
  const servers = "mcp_servers: { a: { command: x, url: 'http://127.0.0.1:1/' }, b__c: { command: x } }\n";
  const result = await runCli(["run", "go"], { home: makeHome(`${compatibleConfig(model)}${servers}`) });
  expect(result.code).toBe(0);
  expect(result.stderr).toMatch(/mcp_servers\.a: expected a command or a url, and not both/);
  expect(result.stderr).toMatch(/mcp_servers\.b__c/);
});
