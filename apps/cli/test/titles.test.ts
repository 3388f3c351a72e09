import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome } from "./outside/built-cli.ts";
import { compatibleConfig, httpError, openAiText, serveModel } from "./outside/model-server.ts";
import type { Answer } from "./outside/model-server.ts";

async function titleOf(home: string): Promise<unknown> {
  const { stdout } = await runInside(["sessions", "list", "--json"], { home });
  return (JSON.parse(stdout) as { sessions: readonly { readonly title?: string }[] }).sessions[0]?.title;
}

const naming = "agent: { title_model: openai-compatible/small }\n";

describe("agent.title_model", () => {
  it("names a session by what it is about, once its answer is there", async () => {
    const server = await serveModel(openAiText("It is noon."), openAiText("The time of day"));
    const home = makeHome(compatibleConfig(server, naming));
    expect(await runInside(["run", "What time is it?", "--session", "s"], { home })).toMatchObject({
      code: 0,
      stdout: "It is noon.\n",
    });
    expect(await titleOf(home)).toBe("The time of day");
    expect(server.requests.map(({ body }) => body["model"])).toEqual(["test", "small"]);
  });

  it("that fails or cannot be used leaves the answer alone, and the first message for a name", async () => {
    const fails: Answer = httpError(500, "{}");
    const server = await serveModel(openAiText("It is noon."), fails, openAiText("Still noon."));
    const home = makeHome(compatibleConfig(server, naming));
    expect(await runInside(["run", "What time is it?"], { home })).toMatchObject({ code: 0, stdout: "It is noon.\n" });
    expect(await titleOf(home)).toBe("What time is it?");
    const other = makeHome(compatibleConfig(server, "agent: { title_model: openai/small }\n"));
    const run = await runInside(["run", "And now?"], { home: other });
    expect(run).toMatchObject({ code: 0, stdout: "Still noon.\n" });
    expect(run.stderr).toContain("Sessions are named by their first messages");
  });
});
