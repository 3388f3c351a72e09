import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome } from "./outside/built-cli.ts";
import { httpError, openAiText, serveModel } from "./outside/model-server.ts";
import type { Answer } from "./outside/model-server.ts";

const refused = httpError(401, '{"error":{"message":"no"}}');

describe("fallback in config.yaml", () => {
  it("names who answers when the model cannot, which is said on stderr and in an event", async () => {
    const [first, second] = [await serveModel(refused), await serveModel(openAiText("fine"))];
    const home = makeHome(
      `model: openai/gpt-x\nfallback: [openai-compatible/m]\nproviders:\n  openai: { base_url: ${first.url} }\n  openai-compatible: { base_url: ${second.url} }\n`,
    );
    const env = { OPENAI_API_KEY: "key-1" };
    const result = await runInside(["run", "hello", "--session", "s"], { home, env });
    expect(result).toMatchObject({ code: 0, stdout: "fine\n" });
    expect(result.stderr).toContain("Asking openai-compatible/m in its place.");
    const json = await runInside(["run", "again", "--session", "s", "--json"], { home, env });
    expect(eventsOf(json.stdout)).toContainEqual(
      expect.objectContaining({ type: "model.fallback", from: "openai/gpt-x", to: "openai-compatible/m" }),
    );
    // Each turn begins with the model that was chosen.
    expect(first.requests).toHaveLength(2);
    // Whoever names a model for one run wants that one.
    const named = await runInside(["run", "hello", "--model", "openai/gpt-x"], { home, env });
    expect(named).toMatchObject({ code: 1, stderr: expect.stringContaining("refused the request's key") });
  });

  it("that cannot be used is left out and told of, and the model answers", async () => {
    const server = await serveModel(openAiText("fine"));
    const home = makeHome(
      `model: openai-compatible/m\nfallback: [openai/gpt-x]\nproviders: { openai-compatible: { base_url: ${server.url} } }\n`,
    );
    const result = await runInside(["run", "hello"], { home });
    expect(result).toMatchObject({ code: 0, stdout: "fine\n" });
    expect(result.stderr).toContain("A fallback is left out: Cannot use openai/gpt-x: it needs a key in");
  });
});

describe("models in config.yaml", () => {
  it("say what a model is like and what it costs", async () => {
    const server = await serveModel(openAiText("fine"));
    const home = makeHome(
      `model: openai-compatible/m\nproviders: { openai-compatible: { base_url: ${server.url} } }\nmodels:\n  openai-compatible/m: { max_output: 50, tools: false, price: { input: 2, output: 10 } }\n`,
    );
    const result = await runInside(["run", "hello", "--json"], { home });
    expect(eventsOf(result.stdout).at(-1)).toMatchObject({ outcome: "answered", usage: { inputTokens: 11 } });
    const { usage } = eventsOf(result.stdout).at(-1) as unknown as { usage: { cost: number } };
    expect(usage.cost).toBeCloseTo((11 * 2 + 7 * 10) / 1e6, 12);
    expect(server.requests[0]?.body).toMatchObject({ max_tokens: 50 });
    expect(server.requests[0]?.body["tools"]).toBeUndefined();
    const told = await runInside(["run", "hello"], { home });
    expect(told.stderr).toContain("11 tokens in, 7 out: cost 0.000092.");
  });
});

describe("tokens in place of a key", () => {
  const tokens = { access_token: "token-0", refresh_token: "refresh-0", expires_at: 1 };
  const granted: Answer = (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ access_token: "token-1", refresh_token: "refresh-1", expires_in: 3600 }));
  };

  const homeWith = (modelUrl: string, tokenUrl: string): { home: string; file: string } => {
    const home = makeHome(
      `model: openai-compatible/m\nproviders:\n  openai-compatible:\n    base_url: ${modelUrl}\n    oauth: { token_url: ${tokenUrl}, client_id: turnkeeper }\n`,
    );
    const file = path.join(home, "tokens", "openai-compatible.json");
    mkdirSync(path.dirname(file), { mode: 0o700 });
    writeFileSync(file, JSON.stringify(tokens), { mode: 0o600 });
    return { home, file };
  };

  it("are refreshed and stored in the home, and a turn is answered", async () => {
    const model = await serveModel(openAiText("fine"));
    const endpoint = await tokenEndpoint(granted);
    const { home, file } = homeWith(model.url, endpoint);
    expect(await runInside(["run", "hello"], { home })).toMatchObject({ code: 0, stdout: "fine\n" });
    expect(model.requests[0]?.headers.authorization).toBe("Bearer token-1");
    const stored = JSON.parse(readFileSync(file, "utf8")) as { access_token: string; expires_at: number };
    expect(stored).toMatchObject({ access_token: "token-1", refresh_token: "refresh-1" });
    expect(stored.expires_at * 1000).toBeGreaterThan(systemHost.clock.wallMs());
    const checkUp = await runInside(["doctor"], { home });
    expect(checkUp.stdout).toContain(`tokens in ${file}`);
    expect(checkUp.stdout + checkUp.stderr).not.toContain("token-1");
  });

  it("that cannot be refreshed fail the turn with what to do", async () => {
    const model = await serveModel(openAiText("fine"));
    const endpoint = await tokenEndpoint(httpError(400, '{"error":"invalid_grant"}'));
    const { home } = homeWith(model.url, endpoint);
    const result = await runInside(["run", "hello"], { home });
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining("Log in again.") });
    expect(model.requests).toHaveLength(0);
  });

  it("that others may read are found by doctor", async () => {
    const { home, file } = homeWith("http://127.0.0.1:1111/v1", "http://127.0.0.1:1112/token");
    chmodSync(file, 0o644);
    const checkUp = await runInside(["doctor"], { home });
    expect(checkUp.stdout).toContain("can be read by other users");
    expect(checkUp.stdout).toContain("chmod 600");
  });
});

/** The endpoint takes a form, which is no JSON. */
async function tokenEndpoint(answer: Answer): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => void answer(response, { url: "", headers: {}, body: { messages: [] }, index: 0 }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
}
