import { afterEach, describe, expect, it } from "vitest";
import { makeHome, startScript } from "./outside/built-cli.ts";
import type { RunningCli } from "./outside/built-cli.ts";
import { isAlive } from "./outside/life.ts";
import { compatibleConfig, openAiStall, serveModel } from "./outside/model-server.ts";

/** The group of the script, whatever of it is left. */
let group: number | undefined;
afterEach(() => {
  try {
    if (group !== undefined) process.kill(-group, "SIGKILL");
  } catch {
    // Nothing of it is left.
  }
  group = undefined;
});

interface Serving {
  readonly script: RunningCli;
  /** The process that `npm start` is, between npm's shell and the CLI. */
  readonly scriptId: number;
  readonly answer: Promise<Response>;
}

/** `npm start -- gateway` with a turn that says nothing more, and a drain of half a second. */
async function serving(): Promise<Serving> {
  const model = await serveModel(openAiStall("half"));
  const home = makeHome(compatibleConfig(model, "gateway: { drain_s: 0.5 }\n"));
  const script = startScript(["gateway", "--port", "0"], { home });
  group = script.pid;
  await script.sees(/Listening on (\S+)/);
  const url = /Listening on (\S+)/.exec(script.stdout)?.[1] ?? "";
  const scriptId = Number(/node (\d+)/.exec(script.stderr)?.[1]);
  const answer = fetch(`${url}/v1/sessions/s/turns`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input: "Hi" }),
  });
  await model.asked;
  return { script, scriptId, answer };
}

async function isInterrupted({ answer }: Serving): Promise<void> {
  expect(await (await answer).json()).toMatchObject({ outcome: "interrupted", reason: "shutdown" });
}

describe("npm start -- gateway, with a turn that does not end by itself", () => {
  it("ends with 0 at SIGTERM: the gateway drains for its time, and stops the turn", async () => {
    const started = await serving();
    process.kill(started.scriptId, "SIGTERM");
    await isInterrupted(started);
    expect(await started.script.ended).toMatchObject({ code: 0, stderr: expect.stringContaining("Draining.") });
  });

  it("ends with 0 at Ctrl-C, which a terminal sends to all of its processes", async () => {
    const started = await serving();
    process.kill(-(group ?? 0), "SIGINT");
    await isInterrupted(started);
    expect(await started.script.ended).toMatchObject({ code: 0, stderr: expect.stringContaining("Draining.") });
  });

  it("ends when the shell that npm put between is gone, which passes nothing on", async () => {
    const started = await serving();
    process.kill(started.script.pid, "SIGKILL");
    await isInterrupted(started);
    await expect.poll(() => isAlive(started.scriptId), { timeout: 20_000 }).toBe(false);
  });
});
