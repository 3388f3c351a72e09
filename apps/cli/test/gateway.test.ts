import path from "node:path";
import { expect, it } from "vitest";
import type { CommandContext } from "../src/command-context.ts";
import type { CommandIo } from "../src/command-io.ts";
import { defaultConfig } from "../src/config/config.ts";
import { openToolSet } from "../src/tool-set.ts";
import { runInside } from "./inside/command-line.ts";
import { makeHome } from "./outside/built-cli.ts";
import { compatibleConfig, makeGate, openAiGatedText, serveModel } from "./outside/model-server.ts";
import { startGateway } from "./outside/started-gateway.ts";

it("serves the store's sessions, drains at SIGTERM and exits 0", async () => {
  const gate = makeGate();
  const server = await serveModel(openAiGatedText(gate, "one ", "two"));
  const home = makeHome(compatibleConfig(server));
  const { process: gateway, url } = await startGateway({ home });
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  const answer = fetch(`${url}/v1/sessions/s/turns`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input: "hello" }),
  });
  await server.asked;
  gateway.child.kill("SIGTERM");
  await gateway.sees(/Draining/, "stderr");
  gate.open();
  expect(await (await answer).json()).toMatchObject({ outcome: "answered", text: "one two" });
  expect(await gateway.ended).toMatchObject({ code: 0 });
  const shown = await runInside(["sessions", "show", "s", "--json"], { home });
  expect(JSON.parse(shown.stdout)).toMatchObject({ inputs: [{ end: "answered" }] });
});

it("refuses a public address without a token", async () => {
  const result = await runInside(["gateway", "--host", "0.0.0.0", "--port", "0"], {
    home: makeHome("model: demo/echo\n"),
  });
  expect(result).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("TURNKEEPER_GATEWAY_TOKEN") });
});

it("gives HTTP sessions no tools but those that gateway.tools names", async () => {
  const io = { environment: {}, workingFolder: ".", stderr: { line: () => {} } } as unknown as CommandIo;
  const namesWith = async (tools: readonly string[]): Promise<readonly string[]> => {
    const config = { ...defaultConfig, gateway: { ...defaultConfig.gateway, tools } };
    const context = {
      config,
      store: { path: path.resolve("state.db") },
      loaded: { file: "config.yaml" },
    } as unknown as CommandContext;
    await using set = {
      value: await openToolSet(io, context, { audience: "http" }),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
    return set.value.tools.map(({ name }) => name);
  };
  expect(await namesWith([])).toEqual([]);
  expect(await namesWith(["read_file", "mcp__git__*"])).toEqual(["read_file"]);
});
