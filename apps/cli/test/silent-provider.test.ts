import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, typesOf } from "./outside/built-cli.ts";
import { compatibleConfig, openAiStall, openAiText, serveModel } from "./outside/model-server.ts";
import type { Answer } from "./outside/model-server.ts";

const watchful = "agent:\n  turn_liveness: { timeout_s: 1.5, poll_s: 0.2 }\n";

/** Says that it is there, again and again, and nothing of an answer. */
const keepAlive: Answer = (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const beating = setInterval(() => response.write(": keep-alive\n\n"), 100);
  response.once("close", () => clearInterval(beating));
};

describe("a provider that stops talking", () => {
  for (const [when, answer] of [
    ["before its first word", openAiStall()],
    ["in the middle of its answer", openAiStall("half an")],
    ["and goes on with keep-alive comments", keepAlive],
  ] as const) {
    it(`${when}: the turn ends as stalled within its bound, and the session works at once`, async () => {
      const server = await serveModel(answer, openAiText("fine"));
      const home = makeHome(compatibleConfig(server, watchful));
      const startedAt = performance.now();
      const result = await runInside(["run", "go", "--session", "s", "--json"], { home });
      // Bound, two polls, and the time a loaded machine takes to start a process.
      expect(performance.now() - startedAt).toBeLessThan(15_000);
      expect(eventsOf(result.stdout).at(-1)).toMatchObject({ outcome: "interrupted", reason: "stalled" });
      expect(typesOf(result.stdout)).toContain("turn.stalled");
      expect(result.stderr).toMatch(/interrupted \(stalled\): No progress for \d/);
      expect(result.code).toBe(130);
      expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({
        code: 0,
        stdout: "fine\n",
      });
    });
  }

  it("is waited for as long as the provider's own silence_s says", async () => {
    const server = await serveModel((response, request) => {
      setTimeout(() => void openAiText("slow but there")(response, request), 4000);
    });
    const home = makeHome(
      `model: openai-compatible/test\nproviders:\n  openai-compatible: { base_url: "${server.url}", silence_s: 30 }\n${watchful}`,
    );
    expect(await runInside(["run", "go", "--session", "s"], { home })).toMatchObject({
      code: 0,
      stdout: "slow but there\n",
    });
  });
});
