import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, startCli, typesOf } from "./outside/built-cli.ts";
import type { RunningCli } from "./outside/built-cli.ts";
import {
  compatibleConfig,
  openAiCall,
  makeGate,
  openAiGatedText,
  openAiStall,
  openAiText,
  serveModel,
} from "./outside/model-server.ts";
import type { Answer, ModelServer } from "./outside/model-server.ts";

async function holdSession(
  ...answers: readonly Answer[]
): Promise<{ readonly home: string; readonly holder: RunningCli; readonly server: ModelServer }> {
  const server = await serveModel(...answers);
  const home = makeHome(compatibleConfig(server));
  const holder = startCli(["run", "first", "--session", "s", "--yes", "--json"], { home });
  await holder.sees(/text\.delta/);
  return { home, holder, server };
}

describe("a busy session", () => {
  it("reject stores nothing and answers busy with exit 75", async () => {
    const { home } = await holdSession(openAiStall("held"));
    const result = await runInside(
      ["run", "second", "--session", "s", "--on-busy", "reject", "--input-id", "refused", "--json"],
      { home },
    );
    expect(typesOf(result.stdout)).toEqual(["turn.finished"]);
    expect(eventsOf(result.stdout)[0]).toMatchObject({ outcome: "busy" });
    expect(result.code).toBe(75);
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(shown.stdout).not.toContain("refused");
  });

  it("queue answers at once; the holder runs it before it exits, and its stdout carries its own answer only", async () => {
    const gate = makeGate();
    const { home, holder } = await holdSession(openAiGatedText(gate, "a b ", "c"), openAiText("answer to the queued"));
    const queued = await runInside(
      ["run", "queued message", "--session", "s", "--on-busy", "queue", "--input-id", "queued", "--json"],
      { home },
    );
    expect(eventsOf(queued.stdout).at(-1)).toMatchObject({ outcome: "queued" });
    expect(queued.code).toBe(0);
    gate.open();
    const ended = await holder.ended;
    expect(eventsOf(ended.stdout).at(-1)).toMatchObject({ outcome: "answered", text: "a b c" });
    expect(ended.stdout).not.toContain("answer to the queued");
    expect(ended.code).toBe(0);
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(JSON.parse(shown.stdout)).toMatchObject({
      inputs: [{ end: "answered" }, { inputId: "queued", end: "answered" }],
    });
    expect(shown.stdout).toContain("answer to the queued");
  });

  it("steer joins the running turn at its next step", async () => {
    const { home, holder, server } = await holdSession(
      openAiCall("shell", '{"command":"until [ -e go ]; do sleep 0.05; done"}', "Working."),
      openAiText("steered answer"),
    );
    const steered = await runInside(["run", "change of plan", "--session", "s", "--on-busy", "steer", "--json"], {
      home,
    });
    expect(eventsOf(steered.stdout).at(-1)).toMatchObject({ outcome: "queued" });
    expect(steered.code).toBe(0);
    writeFileSync(path.join(home, "go"), "");
    expect(eventsOf((await holder.ended).stdout).at(-1)).toMatchObject({ outcome: "answered", text: "steered answer" });
    expect(JSON.stringify(server.requests[1]?.body.messages)).toContain("change of plan");
    expect(server.requests).toHaveLength(2);
  });

  it("steer that comes before the answer's end is answered too, in a paragraph of its own", async () => {
    const steer: Answer = async (response, request) => {
      await runInside(["run", "and the rest?", "--session", "s", "--on-busy", "steer"], { home });
      return openAiText("first answer")(response, request);
    };
    const home: string = makeHome(compatibleConfig(await serveModel(steer, openAiText("the rest"))));
    const run = await runInside(["run", "go", "--session", "s"], { home });
    expect(run).toMatchObject({ code: 0, stdout: "first answer\n\nthe rest\n" });
  });

  it("interrupt stops the running turn for the newer message, which is answered next", async () => {
    const { home, holder } = await holdSession(openAiStall("held"), openAiText("newer answer"));
    const newer = await runInside(["run", "newer", "--session", "s", "--on-busy", "interrupt"], { home });
    expect(newer).toMatchObject({ code: 0, stdout: "newer answer\n" });
    const ended = await holder.ended;
    expect(eventsOf(ended.stdout).at(-1)).toMatchObject({ outcome: "interrupted", reason: "user-message" });
    expect(ended.code).toBe(130);
  });
});

describe("the same input id", () => {
  it("runs once: a second caller gets the first one's answer and exit code", async () => {
    const server = await serveModel(openAiText("only answer"), openAiText("never asked"));
    const home = makeHome(compatibleConfig(server));
    const args = ["run", "hello", "--session", "s", "--input-id", "once"];
    expect(await runInside(args, { home })).toMatchObject({ code: 0, stdout: "only answer\n" });
    expect(await runInside(args, { home })).toMatchObject({ code: 0, stdout: "only answer\n" });
    expect(server.requests).toHaveLength(1);
  });

  it("with other content is a conflict: exit 2, and the first one is untouched", async () => {
    const server = await serveModel(openAiText("only answer"));
    const home = makeHome(compatibleConfig(server));
    await runInside(["run", "hello", "--session", "s", "--input-id", "once"], { home });
    const other = await runInside(["run", "other", "--session", "s", "--input-id", "once", "--json"], { home });
    expect(eventsOf(other.stdout).at(-1)).toMatchObject({ outcome: "failed", reason: "input_id_conflict" });
    expect(other.code).toBe(2);
    expect(server.requests).toHaveLength(1);
  });

  it("asked for by two processes at once is answered to both, and asked of the model once", async () => {
    const gate = makeGate();
    const server = await serveModel(openAiGatedText(gate, "a b ", "c"));
    const home = makeHome(compatibleConfig(server));
    const args = ["run", "hello", "--session", "s", "--input-id", "once", "--json"];
    const both = [startCli(args, { home }), startCli(args, { home })];
    await Promise.all(both.map((one) => one.sees(/input\.accepted/)));
    gate.open();
    for (const one of await Promise.all(both.map(({ ended }) => ended))) {
      expect(eventsOf(one.stdout).at(-1)).toMatchObject({ outcome: "answered", text: "a b c" });
      expect(one.code).toBe(0);
    }
    expect(server.requests).toHaveLength(1);
  });
});
