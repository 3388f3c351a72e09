import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { systemHost } from "@turnkeeper/kernel";
import { resolveModel } from "@turnkeeper/models";
import { createMemoryStore, verifyRecords } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../src/index.ts";
import type { Agent } from "../src/index.ts";

// Streams that real providers sent stand beside the repository where they may be used; what the loop makes of each kind
// of ending is covered without them by answer-endings.test.ts.
const folder = fileURLToPath(new URL("../../../../shared/fixtures/provider-streams/", import.meta.url));
const isThere = existsSync(folder);

const linesOf = (file: string): string[] =>
  readFileSync(`${folder}${file}.chunks.txt`, "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "");

const eventOf = (line: string, isAnthropic: boolean): string =>
  isAnthropic ? `event: ${(JSON.parse(line) as { type: string }).type}\ndata: ${line}\n\n` : `data: ${line}\n\n`;

/** A server that answers with one recording after another, and keeps what it was asked. */
async function provider(files: readonly string[]): Promise<AsyncDisposable & { url: string; bodies: string[] }> {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const file = files[bodies.length] ?? "";
      bodies.push(body);
      const isAnthropic = file.startsWith("anthropic");
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const line of linesOf(file)) response.write(eventOf(line, isAnthropic));
      response.end(isAnthropic ? "" : "data: [DONE]\n\n");
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const close = (): Promise<void> => {
    server.closeAllConnections();
    return new Promise((resolve) => void server.close(() => resolve()));
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, bodies, [Symbol.asyncDispose]: close };
}

async function agentAt(
  url: string,
  isAnthropic: boolean,
): Promise<AsyncDisposable & { agent: Agent; isClean: () => Promise<void> }> {
  const store = createMemoryStore({ host: systemHost });
  const model = await resolveModel(isAnthropic ? "anthropic/claude-x" : "openai-compatible/some-model", {
    host: systemHost,
    env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: url },
    ...(isAnthropic ? {} : { providers: { "openai-compatible": { baseUrl: `${url}/v1` } } }),
  });
  const tools = ["weather", "updateIssueList"].map((name) =>
    defineTool({ name, description: "Answers.", input: z.looseObject({}), execute: async () => "It is sunny." }),
  );
  const agent = await createAgent({ store, model, tools });
  const close = async (): Promise<void> => {
    await agent.close();
    await model.close();
  };
  const isClean = async (): Promise<void> => {
    const records = await store.sessions.records("s");
    expect(records && verifyRecords(records)).toEqual([]);
  };
  return { agent, isClean, [Symbol.asyncDispose]: close };
}

describe.skipIf(!isThere)("a recorded stream (skipped where the recordings are not beside the repository)", () => {
  it.each([
    "anthropic-tool-no-args",
    "anthropic-json-other-tool.1",
    "mistral-tool-call",
    "deepseek-tool-call",
    "groq-tool-call",
    "alibaba-tool-call",
    "xai-tool-call",
  ])("%s: its call runs, its result goes back, and the answer ends the turn", async (file) => {
    const isAnthropic = file.startsWith("anthropic");
    const answer = isAnthropic ? "anthropic-text" : "openai-text";
    await using server = await provider([file, answer, answer]);
    const { url, bodies } = server;
    await using own = await agentAt(url, isAnthropic);
    const { agent, isClean } = own;
    const turn = agent.run("s", "What is the weather?");
    const finished = await turn.result;
    expect(finished).toMatchObject({ outcome: "answered" });
    expect(finished.text.length).toBeGreaterThan(20);
    const types: string[] = [];
    for await (const event of turn) types.push(event.type);
    expect(types).toContain("tool.finished");
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).toMatch(/It is sunny\.|There is no tool named/);
    await isClean();
    expect(await agent.run("s", "And tomorrow?").result).toMatchObject({ outcome: "answered" });
    await isClean();
  });

  it.each(["anthropic-text", "openai-text", "deepseek-reasoning", "azure-model-router.1"])(
    "%s: is an answer, and the next turn can go on from it",
    async (file) => {
      await using server = await provider([file, file]);
      await using own = await agentAt(server.url, file.startsWith("anthropic"));
      const { agent, isClean } = own;
      const finished = await agent.run("s", "Hello").result;
      expect(finished).toMatchObject({ outcome: "answered" });
      expect(await agent.run("s", "Go on").result).toMatchObject({ outcome: "answered", text: finished.text });
      expect(server.bodies).toHaveLength(2);
      await isClean();
    },
  );

  it("anthropic-refusal: is said, and the session is usable", async () => {
    await using server = await provider(["anthropic-refusal", "anthropic-text"]);
    await using own = await agentAt(server.url, true);
    const { agent, isClean } = own;
    const finished = await agent.run("s", "Hello").result;
    expect(finished.outcome === "answered" ? finished.text : finished.detail).not.toBe("");
    expect(await agent.run("s", "Hello again").result).toMatchObject({ outcome: "answered" });
    await isClean();
  });
});
