import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, startCli } from "./outside/built-cli.ts";
import { compatibleConfig, makeGate, openAiCall, openAiStall, openAiText, serveModel } from "./outside/model-server.ts";
import type { Answer } from "./outside/model-server.ts";

interface Child {
  readonly sessionId: string;
  readonly outcome: string;
  readonly reason?: string;
}

interface Shown {
  readonly parent?: { readonly sessionId: string };
  readonly inputs: readonly { readonly inputId: string; readonly end: string | null; readonly child?: Child }[];
  readonly entries: readonly {
    readonly role: string;
    readonly child?: string;
    readonly status?: string;
    readonly output?: unknown;
  }[];
}

async function shown(home: string, session: string): Promise<Shown> {
  return JSON.parse((await runInside(["sessions", "show", session, "--json"], { home })).stdout) as Shown;
}

async function isClean(home: string): Promise<void> {
  expect(await runInside(["sessions", "verify", "--json"], { home })).toMatchObject({
    code: 0,
    stdout: '{"violations":[]}\n',
  });
}

const delegate = openAiCall("delegate", '{"task":"look for it"}');

describe("a subagent", () => {
  it("is a session of its own, named where it begins, and its answer is the result of the call", async () => {
    const server = await serveModel(delegate, openAiText("found it"), openAiText("all done"));
    const home = makeHome(compatibleConfig(server));
    const run = await runInside(["run", "go", "--session", "s"], { home });
    expect(run).toMatchObject({ code: 0, stdout: "all done\n" });
    const [, child = ""] = /subagent in session (\S+)/.exec(run.stderr) ?? [];
    expect((await shown(home, child)).parent).toMatchObject({ sessionId: "s" });
    const { entries, inputs } = await shown(home, "s");
    expect(entries.find(({ role }) => role === "tool")).toMatchObject({
      status: "ok",
      output: { session: child, outcome: "answered", answer: "found it" },
    });
    expect(inputs.filter((input) => input.child)).toMatchObject([{ end: "answered", child: { sessionId: child } }]);
    expect(server.requests[1]?.body.messages.at(-1)).toMatchObject({ role: "user", content: "look for it" });
    await isClean(home);
  });

  it("is bounded as agent.delegation says: how many a turn has, and what one of them may use", async () => {
    const server = await serveModel(
      delegate,
      openAiCall("list_files", "{}"),
      openAiCall("delegate", '{"task":"look again"}'),
      openAiText("all done"),
    );
    const home = makeHome(
      `${compatibleConfig(server)}\nagent: { delegation: { max_children: 1, max_iterations: 1, deadline_s: 30, budget: { tokens: 100000 } } }\n`,
    );
    expect(await runInside(["run", "go", "--session", "s"], { home })).toMatchObject({ code: 0, stdout: "all done\n" });
    const { entries } = await shown(home, "s");
    const results = entries.filter(({ role }) => role === "tool");
    expect(results).toMatchObject([
      { output: { outcome: "failed", reason: "MAX_ITERATIONS" } },
      { status: "error", output: expect.stringContaining("A turn may have 1 subagents") },
    ]);
    await isClean(home);
  });

  it("is not bounded by a cost that nothing can count, and the user is told so", async () => {
    const home = makeHome("agent: { delegation: { budget: { cost: 1 } } }\n");
    const run = await runInside(["run", "hi", "--model", "demo/echo"], { home });
    expect(run).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/agent\.delegation\.budget\.cost bounds nothing: demo\/echo has no price/),
    });
  });

  it("rule 7.20: that dies with its parent by kill -9 is told of to the parent's next turns, once", async () => {
    const asked = makeGate();
    const stalls: Answer = (response, request) => {
      asked.open();
      return openAiStall("I am looking")(response, request);
    };
    const server = await serveModel(delegate, stalls, openAiText("went on"), openAiText("and on"));
    const home = makeHome(compatibleConfig(server));
    const first = startCli(["run", "go", "--session", "s", "--json"], { home });
    await asked.opened;
    first.child.kill("SIGKILL");
    const { stdout } = await first.ended;
    const started = eventsOf(stdout).find(({ type }) => type === "child.started");
    expect(started).toBeDefined();
    // It is told of at the first turn's start, between its answer and its end, or at the second's start: whether the
    // reaper, the grant or the answer comes first decides. It is one message each time, and each answer is a paragraph.
    let said = "";
    for (let run = 0; run < 2; run++) {
      const { code, stdout: text } = await runInside(["run", "what came of it?", "--session", "s"], { home });
      expect(code).toBe(0);
      said += text;
    }
    expect(said).toMatch(/^went on\n(\n?and on\n)+$/);
    const { entries, inputs } = await shown(home, "s");
    expect(entries.filter(({ role }) => role === "tool")).toMatchObject([{ status: "unknown" }]);
    expect(entries.filter((entry) => entry.child)).toMatchObject([
      { role: "user", child: started?.["childSessionId"] },
    ]);
    expect(inputs.filter((input) => input.child)).toMatchObject([
      { end: "answered", child: { outcome: "interrupted", reason: "crashed" } },
    ]);
    const told = JSON.stringify(server.requests.at(-1)?.body.messages).split("The subagent in session");
    expect(told).toHaveLength(2);
    await isClean(home);
  });
});
