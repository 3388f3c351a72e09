import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, startCli, startOnTerminal } from "./outside/built-cli.ts";
import { compatibleConfig, httpError, openAiStall, openAiText, serveModel } from "./outside/model-server.ts";
import type { ModelServer } from "./outside/model-server.ts";

const long = "the cat sat on the mat. ".repeat(150).trim();

function withWindow(server: ModelServer, tokens: number): string {
  return `model: openai-compatible/test\nproviders:\n  openai-compatible: { base_url: "${server.url}", context_window: ${tokens} }\nagent: { compression: { context_timeout_s: 20 } }\n`;
}

const compactionsOf = (stdout: string): readonly unknown[] =>
  eventsOf(stdout).filter(({ type }) => type.startsWith("compaction."));

describe("a conversation that gets too long for its model", () => {
  it("is summarised on the way, in the same session, and everything stays readable and searchable", async () => {
    const server = await serveModel(openAiText(long), openAiText("THE SUMMARY"), openAiText("done"));
    const home = makeHome(withWindow(server, 1000));
    await runInside(["run", "tell me of the cat", "--session", "s"], { home });
    const second = await runInside(["run", "go on", "--session", "s", "--json"], { home });
    expect(second.code).toBe(0);
    expect(compactionsOf(second.stdout)).toMatchObject([
      { type: "compaction.started", cause: "threshold", windowTokens: 1000, sessionId: "s" },
      { type: "compaction.finished", cause: "threshold", method: "model" },
    ]);
    const asked = JSON.stringify(server.requests[2]?.body.messages);
    expect(asked).toMatch(/THE SUMMARY[^]*tell me of the cat[^]*go on/);
    expect(asked).not.toContain("sat on the mat");
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(JSON.parse(shown.stdout)).toMatchObject({
      inputs: [{ end: "answered" }, { end: "answered" }],
      entries: [{ role: "user" }, { role: "assistant" }, { role: "user" }, { role: "summary" }, { role: "assistant" }],
    });
    expect((await runInside(["sessions", "search", "the mat"], { home })).stdout).toContain("the cat sat");
    expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
  });

  it("is summarised when the provider refuses it, and asked with again in the same turn", async () => {
    const refusal = JSON.stringify({
      error: { message: "This model's maximum context length is 900 tokens.", code: "context_length_exceeded" },
    });
    const server = await serveModel(
      openAiText(long),
      httpError(400, refusal),
      openAiText("THE SUMMARY"),
      openAiText("done"),
    );
    const home = makeHome(compatibleConfig(server));
    await runInside(["run", "tell me of the cat", "--session", "s"], { home });
    const second = await runInside(["run", "go on", "--session", "s"], { home });
    expect(second).toMatchObject({ code: 0, stdout: "done\n" });
    expect(second.stderr).toMatch(/The conversation is long\. Summarising 2 messages[^]*Summarised in/);
    expect(server.requests).toHaveLength(4);
  });

  it("goes on as it is where the summary fails, says so, and waits with the next try in another process too", async () => {
    const refusal = httpError(401, JSON.stringify({ error: { message: "no such key" } }));
    const server = await serveModel(openAiText(long), refusal, openAiText("one"), openAiText("two"));
    const home = makeHome(withWindow(server, 1000));
    await runInside(["run", "tell me of the cat", "--session", "s"], { home });
    const second = await runInside(["run", "go on", "--session", "s", "--json"], { home });
    expect(second.code).toBe(0);
    expect(compactionsOf(second.stdout)).toMatchObject([
      { type: "compaction.started" },
      { type: "compaction.deferred", reason: "unavailable", retryInMs: 60_000 },
    ]);
    const third = await runInside(["run", "and on", "--session", "s"], { home });
    expect(third).toMatchObject({ code: 0, stdout: "two\n" });
    expect(third.stderr).toContain("Not summarised now: Paused after a summary that failed");
  });

  it("survives a process that is killed over its summary: nothing is lost, and the next turn says that it waits", async () => {
    const server = await serveModel(openAiText(long), openAiStall("half a summary"), openAiText("done"));
    const home = makeHome(withWindow(server, 1000));
    await runInside(["run", "tell me of the cat", "--session", "s"], { home });
    const killed = startCli(["run", "go on", "--session", "s", "--json"], { home });
    await killed.sees(/compaction\.started/);
    await expect.poll(() => server.requests.length, { timeout: 10_000 }).toBe(2);
    killed.child.kill("SIGKILL");
    await killed.ended;
    const next = await runInside(["run", "and now", "--session", "s", "--json"], { home });
    expect(next.code).toBe(0);
    expect(compactionsOf(next.stdout)).toMatchObject([{ type: "compaction.deferred", reason: "cool-down" }]);
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(JSON.parse(shown.stdout)).toMatchObject({
      inputs: [{ end: "answered" }, { end: "interrupted" }, { end: "answered" }],
    });
    expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
  });

  it("Ctrl-C stops a compaction by hand and gives the prompt back, with everything as it was", async () => {
    const server = await serveModel(openAiText(long), openAiStall("half a summary"));
    const home = makeHome(compatibleConfig(server));
    const chat = startOnTerminal(["chat", "--session", "s"], { home });
    const type = (text: string): void => void chat.child.stdin.write(text);
    await chat.sees(/› /, "screen");
    type("hello\r");
    await chat.sees(/mat\.[^]*› /, "screen");
    type("/compact\r");
    await chat.sees(/Summarising 2 messages/, "screen");
    await expect.poll(() => server.requests.length, { timeout: 10_000 }).toBe(2);
    type("\u0003");
    await chat.sees(/Not summarised now: The turn was stopped[^]*› /, "screen");
    type("/context\r");
    await chat.sees(/Next: it is summarised from 256,000 tokens on, or when/, "screen");
    type("\u0004");
    expect(await chat.ended).toMatchObject({ code: 0 });
    expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
  });
});
