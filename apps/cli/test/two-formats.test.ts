import { describe, expect, it } from "vitest";
import { eventsOf, makeHome, runCli, typesOf } from "./outside/built-cli.ts";
import {
  anthropicCall,
  anthropicText,
  compatibleConfig,
  openAiCall,
  openAiText,
  serveModel,
} from "./outside/model-server.ts";

const wholeTurn = [
  "input.accepted",
  "turn.started",
  "text.delta",
  "usage",
  "tool.started",
  "tool.finished",
  "text.delta",
  "usage",
  "turn.finished",
];

describe("a turn against an OpenAI-compatible server", () => {
  it("streams the answer to stdout and shows tool calls on stderr", async () => {
    const server = await serveModel(
      openAiCall("list_files", '{"path":"."}', "Let me look."),
      openAiText("There is", " config.yaml."),
    );
    const home = makeHome(compatibleConfig(server));
    const result = await runCli(["run", "What is here?", "--session", "first"], { home });
    expect(result.stderr).toMatch(/▸ list_files .*\n {2}✓ list_files/);
    expect(result.stdout).toBe("Let me look.\n\nThere is config.yaml.\n");
    expect(result.code).toBe(0);
  });

  it("prints every event as one JSON line, in order, the last one with the outcome", async () => {
    const server = await serveModel(
      openAiCall("list_files", '{"path":"."}', "Let me look."),
      openAiText("There is", " config.yaml."),
    );
    const home = makeHome(compatibleConfig(server));
    const result = await runCli(["run", "What is here?", "--session", "first", "--json"], { home });
    const events = eventsOf(result.stdout);
    expect(typesOf(result.stdout)).toEqual(wholeTurn);
    for (const event of events)
      expect(event).toMatchObject({ sessionId: "first", at: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(events.find(({ type }) => type === "tool.finished")).toMatchObject({
      name: "list_files",
      ok: true,
      durationMs: expect.any(Number),
    });
    expect(events.at(-1)).toMatchObject({
      outcome: "answered",
      text: "There is config.yaml.",
      usage: { inputTokens: 22, outputTokens: 14 },
    });
    expect(result.code).toBe(0);
  });

  it("remembers the session on the next run, in another process", async () => {
    const server = await serveModel(openAiText("One."), openAiText("Two."));
    const home = makeHome(compatibleConfig(server));
    await runCli(["run", "first question", "--session", "s"], { home });
    await runCli(["run", "second question", "--session", "s"], { home });
    const said = JSON.stringify(server.requests[1]?.body.messages);
    expect(said).toContain("first question");
    expect(said).toContain("One.");
    expect(said).toContain("second question");
  });

  it("runs a shell command with --yes and without the provider's key in its environment", async () => {
    const server = await serveModel(openAiCall("shell", '{"command":"echo key=$MY_KEY"}'), openAiText("Done."));
    const home = makeHome(
      `model: openai-compatible/test\nproviders:\n  openai-compatible: { base_url: "${server.url}", api_key_env: MY_KEY }\n`,
    );
    const result = await runCli(["run", "go", "--session", "s", "--yes", "--json"], {
      home,
      env: { MY_KEY: "secret-key-1234" },
    });
    expect(server.requests[0]?.headers.authorization).toBe("Bearer secret-key-1234");
    expect(eventsOf(result.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({
      ok: true,
      output: expect.stringContaining("key=\n"),
    });
    expect(result.stdout + result.stderr).not.toContain("secret-key-1234");
    const shown = await runCli(["sessions", "show", "s", "--json"], { home });
    expect(shown.stdout).not.toContain("secret-key-1234");
  });

  it("denies a call that needs approval where nobody can be asked, and tells the model", async () => {
    const server = await serveModel(openAiCall("shell", '{"command":"touch made"}'), openAiText("I could not."));
    const home = makeHome(compatibleConfig(server));
    const result = await runCli(["run", "go", "--session", "s", "--json"], { home });
    expect(eventsOf(result.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({ ok: false });
    expect(JSON.stringify(server.requests[1]?.body.messages)).toContain("Denied");
    expect(result.code).toBe(0);
  });
});

describe("a turn against an Anthropic-format server", () => {
  it("tells calls as the assistant's and results as the user's, step after step and in the next run", async () => {
    const list = anthropicCall("list_files", '{"path":"."}');
    const server = await serveModel(list, list, anthropicText("One file."), anthropicText("Yes."));
    const home = makeHome("model: anthropic/test\n");
    const env = { ANTHROPIC_API_KEY: "secret-key-5678", ANTHROPIC_BASE_URL: server.url };
    for (const message of ["What is here?", "Sure?"])
      expect(await runCli(["run", message, "--session", "s"], { home, env })).toMatchObject({ code: 0 });
    const { messages = [] } = server.requests.at(-1)?.body ?? {};
    const blocks = messages.flatMap(({ role, content }) =>
      (content as readonly { readonly type: string }[]).map(({ type }) => `${role}: ${type}`),
    );
    const step = ["assistant: tool_use", "user: tool_result"];
    expect(blocks).toEqual(["user: text", ...step, ...step, "assistant: text", "user: text"]);
    expect(server.requests).toHaveLength(4);
  });

  it("streams text and tool calls, and sends the key in that API's own header", async () => {
    const server = await serveModel(
      anthropicCall("list_files", '{"path":"."}'),
      anthropicText("There is", " config.yaml."),
    );
    const home = makeHome("model: anthropic/test\n");
    const env = { ANTHROPIC_API_KEY: "secret-key-5678", ANTHROPIC_BASE_URL: server.url };
    const result = await runCli(["run", "What is here?", "--session", "first", "--json"], { home, env });
    expect(typesOf(result.stdout)).toEqual(wholeTurn.filter((_type, index) => index !== 2));
    expect(eventsOf(result.stdout).at(-1)).toMatchObject({ outcome: "answered", text: "There is config.yaml." });
    expect(server.requests[0]?.headers["x-api-key"]).toBe("secret-key-5678");
    expect(result.stdout + result.stderr).not.toContain("secret-key-5678");
    expect(result.code).toBe(0);
  });
});
