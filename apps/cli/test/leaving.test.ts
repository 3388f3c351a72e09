import { describe, expect, it, vi } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome, startCli, startOnTerminal } from "./outside/built-cli.ts";
import type { RunningCli } from "./outside/built-cli.ts";
import { compatibleConfig, makeGate, openAiGatedText, openAiText, serveModel } from "./outside/model-server.ts";
import type { Gate } from "./outside/model-server.ts";

async function endsIn(home: string): Promise<readonly (string | null)[]> {
  const shown = await runInside(["sessions", "show", "s", "--json"], { home });
  const { inputs } = JSON.parse(shown.stdout) as { readonly inputs: readonly { readonly end: string | null }[] };
  return inputs.map(({ end }) => end);
}

/** A `run` that has answered its own message and runs the first of two that others have queued. */
async function withQueue(): Promise<{ readonly home: string; readonly run: RunningCli; readonly queued: Gate }> {
  const [own, queued] = [makeGate(), makeGate()];
  const server = await serveModel(
    openAiGatedText(own, "one ", "two"),
    openAiGatedText(queued, "three ", "four"),
    openAiText("never asked for"),
  );
  const home = makeHome(compatibleConfig(server));
  const run = startCli(["run", "first", "--session", "s"], { home });
  await run.sees(/one/);
  for (const text of ["second", "third"])
    expect(await runInside(["run", text, "--session", "s", "--on-busy", "queue"], { home })).toMatchObject({ code: 0 });
  own.open();
  await run.sees(/Finishing what is queued or still ends on this session before leaving/, "stderr");
  await vi.waitFor(() => expect(server.requests).toHaveLength(2), { timeout: 20_000 });
  run.child.kill("SIGINT");
  await run.sees(/The rest is left to others/, "stderr");
  return { home, run, queued };
}

describe("Ctrl-C while a run runs what is queued before it leaves", () => {
  it("lets the message that runs come to its end, and leaves the rest to others", async () => {
    const { home, run, queued } = await withQueue();
    queued.open();
    expect(await run.ended).toMatchObject({ code: 0, stdout: "one two\n" });
    expect(await endsIn(home)).toEqual(["answered", "answered", null]);
  });

  it("stops it the second time", async () => {
    const { home, run } = await withQueue();
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 0, stdout: "one two\n" });
    expect(await endsIn(home)).toEqual(["answered", "interrupted", null]);
  });
});

it("a chat that stopped waiting runs the message no more unseen: whoever has the session does, and the chat shows it with the next one", async () => {
  const gate = makeGate();
  const server = await serveModel(
    openAiGatedText(gate, "one ", "two"),
    openAiText("second answer"),
    openAiText("third answer"),
  );
  const home = makeHome(compatibleConfig(server));
  const holder = startCli(["run", "first", "--session", "s"], { home });
  await holder.sees(/one/);
  const chat = startOnTerminal(["chat", "--session", "s"], { home });
  const type = (text: string): void => void chat.child.stdin.write(text);
  await chat.sees(/› /, "screen");
  type("second\r");
  await chat.sees(/waiting for it/, "screen");
  type("\u0003");
  await chat.sees(/stays in the queue[^]*› /, "screen");
  const why = await runInside(["why", "s"], { home });
  expect(why.stdout).toContain("for whoever runs the session next");
  gate.open();
  expect(await holder.ended).toMatchObject({ code: 0 });
  expect(await endsIn(home)).toEqual(["answered", "answered"]);
  expect(chat.screen).not.toContain("second answer");
  type("third\r");
  await chat.sees(/second answer[^]*third answer[^]*› /, "screen");
  type("\u0004");
  expect(await chat.ended).toMatchObject({ code: 0 });
  expect(await endsIn(home)).toEqual(["answered", "answered", "answered"]);
});
