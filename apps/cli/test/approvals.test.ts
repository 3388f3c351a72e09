import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, runCli } from "./outside/built-cli.ts";
import type { RunningCli } from "./outside/built-cli.ts";
import { compatibleConfig, makeGate, openAiCall, openAiText, serveModel } from "./outside/model-server.ts";
import type { Answer } from "./outside/model-server.ts";
import { startGateway } from "./outside/started-gateway.ts";

interface Served {
  readonly home: string;
  readonly gateway: RunningCli;
  readonly url: string;
}

const runsCommand = openAiCall("shell", JSON.stringify({ command: "echo ran >> ran.txt" }));
const delegates = openAiCall("delegate", JSON.stringify({ task: "run it" }));

/** A gateway whose model asks for one command and then gives each of these answers. */
function serve(...answers: readonly Answer[]): Promise<Served> {
  return serveAll(runsCommand, ...answers);
}

async function serveAll(...answers: readonly Answer[]): Promise<Served> {
  const server = await serveModel(...answers);
  const home = makeHome(`${compatibleConfig(server)}gateway: { tools: [shell, delegate] }\n`);
  return serveFrom(home);
}

async function serveFrom(home: string): Promise<Served> {
  const { process: gateway, url } = await startGateway({ home });
  return { home, gateway, url };
}

type Event = Readonly<Record<string, unknown>>;

const isQuestion = ({ type }: Event): boolean => type === "approval.requested";
/** Its turn is suspended over a subagent, which has asked before. */
const rests = ({ type, awaits }: Event): boolean => type === "turn.waiting" && awaits !== undefined;

/** Sends a message whose events are streamed; answers the question that its turn asks, and the rest of the stream. */
async function ask(
  { url }: Served,
  isAsked = isQuestion,
): Promise<{ readonly question: Event; readonly rest: Promise<readonly Event[]> }> {
  const answer = await fetch(`${url}/v1/sessions/s/turns`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ input: "go", inputId: "one" }),
  });
  const stream = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!stream) throw new Error("There is no stream.");
  let text = "";
  const events = (): readonly Event[] =>
    text.split("\n").flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as Event] : []));
  const question = (): Event | undefined => events().find(isQuestion);
  while (!events().some(isAsked)) {
    const { value, done } = await stream.read();
    if (done) throw new Error(`The stream ended without a question: ${text}`);
    text += value;
  }
  const rest = (async () => {
    try {
      for (let part = await stream.read(); !part.done; part = await stream.read()) text += part.value;
    } catch {
      // The gateway was killed.
    }
    return events();
  })();
  return { question: question() ?? {}, rest };
}

const ranIn = (home: string): string => {
  try {
    return readFileSync(path.join(home, "ran.txt"), "utf8");
  } catch {
    return "";
  }
};

// Four processes, one after another.
it(
  "rule 7.19: a question outlives kill -9, is answered from another process, and its turn goes on in a third",
  { timeout: 120_000 },
  async () => {
    const served = await serve(openAiText("Done."), openAiText("Second."));
    const { home, gateway } = served;
    const { question, rest } = await ask(served);
    const callId = String(question["callId"]);
    gateway.child.kill("SIGKILL");
    await gateway.ended;
    const started = (await rest).find(({ type }) => type === "turn.started");
    const why = await runInside(["why", "s"], { home });
    expect(why.stdout).toContain(`shell (call ${callId}), asked`);
    expect(why.stdout).toMatch(new RegExp(`turnkeeper approve s ${callId} allow --store`));
    const busy = await runInside(["run", "no", "--session", "s", "--on-busy", "reject", "--json"], { home });
    expect(busy.code).toBe(75);
    expect(eventsOf(busy.stdout)).toMatchObject([{ type: "turn.finished", outcome: "busy" }]);
    expect(await runInside(["approve", "s", "other", "allow"], { home })).toMatchObject({ code: 1 });
    expect(await runInside(["approve", "s", callId, "perhaps"], { home })).toMatchObject({ code: 2 });
    const approved = await runCli(["approve", "s", callId, "allow"], { home });
    expect(approved).toMatchObject({ code: 0, stderr: expect.stringContaining("else with the next message") });
    expect(await runInside(["approve", "s", callId, "deny"], { home })).toMatchObject({ code: 1 });
    expect(ranIn(home)).toBe("");

    const next = await runCli(["run", "next", "--session", "s", "--json"], { home });
    expect(next.code).toBe(0);
    expect(eventsOf(next.stdout).at(-1)).toMatchObject({ outcome: "answered", text: "Second." });
    expect(ranIn(home)).toBe("ran\n");
    const shown = JSON.parse((await runInside(["sessions", "show", "s", "--json"], { home })).stdout) as {
      readonly inputs: readonly Event[];
      readonly turns: readonly Event[];
    };
    expect(shown.inputs).toMatchObject([{ inputId: "one", end: "answered" }, { end: "answered" }]);
    expect(shown.turns).toMatchObject([
      { turnId: started?.["turnId"], approvals: [{ callId, decision: "allow" }] },
      { outcome: "answered" },
    ]);
    expect(Number(shown.turns[0]?.["fencingToken"])).toBeGreaterThan(Number(started?.["fencingToken"]));
    expect(await runInside(["sessions", "verify", "s"], { home })).toMatchObject({ code: 0 });
  },
);

it(
  "rule 7.19: a gateway goes on with what was answered while nobody lived, by itself",
  { timeout: 120_000 },
  async () => {
    const goesOn = makeGate();
    const served = await serve((response, request) => {
      goesOn.open();
      return openAiText("Done.")(response, request);
    });
    const { home, gateway } = served;
    const { question } = await ask(served);
    gateway.child.kill("SIGKILL");
    await gateway.ended;
    const callId = String(question["callId"]);
    expect(await runInside(["approve", "s", callId, "allow"], { home })).toMatchObject({ code: 0 });
    const next = await serveFrom(home);
    await goesOn.opened;
    next.gateway.child.kill("SIGTERM");
    expect(await next.gateway.ended).toMatchObject({ code: 0 });
    expect(ranIn(home)).toBe("ran\n");
    const shown = JSON.parse((await runInside(["sessions", "show", "s", "--json"], { home })).stdout) as {
      readonly inputs: readonly Event[];
    };
    expect(shown.inputs).toMatchObject([{ inputId: "one", end: "answered" }]);
    expect(await runInside(["sessions", "verify", "s"], { home })).toMatchObject({ code: 0 });
  },
);

it("a living process that asked goes on as soon as it is answered, and tells the model of a denial", async () => {
  const served = await serve(openAiText("I will not."));
  const { question, rest } = await ask(served);
  const { home, gateway, url } = served;
  const approve = (decision: string): Promise<Response> =>
    fetch(`${url}/v1/sessions/s/approvals/${String(question["callId"])}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ decision }),
    });
  const denied = await approve("deny");
  expect(denied.status).toBe(200);
  expect(await denied.json()).toMatchObject({ open: [], isResumed: true });
  expect((await approve("allow")).status).toBe(409);
  expect((await rest).at(-1)).toMatchObject({ type: "turn.finished", outcome: "answered", text: "I will not." });
  expect(ranIn(home)).toBe("");
  gateway.child.kill("SIGTERM");
  await gateway.ended;
});

it("stop ends a turn that waits for approval, whoever asked", async () => {
  const served = await serve();
  const { rest } = await ask(served);
  const { home, gateway } = served;
  const top = await runInside(["top", "--json"], { home });
  expect(JSON.parse(top.stdout)).toMatchObject({ session: "s", state: "asks" });
  const stopped = await runCli(["stop", "s"], { home });
  expect(stopped).toMatchObject({ code: 0, stderr: expect.stringContaining("waited for approval") });
  expect((await rest).at(-1)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
  expect(ranIn(home)).toBe("");
  expect(await runInside(["sessions", "verify", "s"], { home })).toMatchObject({ code: 0 });
  gateway.child.kill("SIGTERM");
  await gateway.ended;
});

interface ShownTurns {
  readonly inputs: readonly Event[];
  readonly turns: readonly Event[];
  readonly entries: readonly Event[];
}

async function shown(home: string, session: string): Promise<ShownTurns> {
  return JSON.parse((await runInside(["sessions", "show", session, "--json"], { home })).stdout) as ShownTurns;
}

async function endedOnceWithItsSubagent(home: string, child: string): Promise<void> {
  expect(ranIn(home)).toBe("ran\n");
  const { inputs, turns, entries } = await shown(home, "s");
  expect(inputs.filter((input) => input["child"])).toMatchObject([
    { end: "answered", child: { sessionId: child, outcome: "answered" } },
  ]);
  expect(inputs[0]).toMatchObject({ inputId: "one", end: "answered" });
  expect(turns[0]).toMatchObject({
    outcome: "answered",
    approvals: [{ name: "delegate", subagent: { session: child, endedAt: expect.any(String) } }],
  });
  expect(entries.filter(({ role }) => role === "tool")).toMatchObject([
    { name: "delegate", status: "ok", output: { session: child, outcome: "answered", answer: "It ran." } },
  ]);
  expect((await shown(home, child)).turns).toMatchObject([{ outcome: "answered" }]);
  expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
}

it(
  "rule 7.19: a subagent's question outlives kill -9 of its parent, and both go on with the next message",
  { timeout: 120_000 },
  async () => {
    const served = await serveAll(
      delegates,
      runsCommand,
      openAiText("It ran."),
      openAiText("Done."),
      openAiText("Second."),
    );
    const { home, gateway } = served;
    const { question, rest } = await ask(served, rests);
    const child = String(question["childSessionId"]);
    const callId = String(question["callId"]);
    gateway.child.kill("SIGKILL");
    await gateway.ended;
    const [waits] = (await rest).filter(rests);
    const why = await runInside(["why", "s"], { home });
    expect(why.stdout).toContain(`waits for the subagent in session ${child}`);
    expect(why.stdout).toContain(`turnkeeper why ${child} --store`);
    const wrong = await runInside(["approve", "s", (waits?.["awaits"] as string[] | undefined)?.[0] ?? "", "allow"], {
      home,
    });
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining(`subagent in session ${child}`) });
    const approved = await runCli(["approve", child, callId, "allow"], { home });
    expect(approved).toMatchObject({ code: 0, stderr: expect.stringMatching(/next message: .* --session s /) });
    expect(ranIn(home)).toBe("");

    const next = await runCli(["run", "next", "--session", "s", "--json"], { home });
    expect(next.code).toBe(0);
    expect(eventsOf(next.stdout).at(-1)).toMatchObject({ outcome: "answered", text: "Second." });
    await endedOnceWithItsSubagent(home, child);
  },
);

it(
  "rule 7.19: a gateway goes on with an answered subagent of a killed one, and then with its parent, by itself",
  { timeout: 120_000 },
  async () => {
    const isDone = makeGate();
    const served = await serveAll(delegates, runsCommand, openAiText("It ran."), (response, request) => {
      isDone.open();
      return openAiText("Done.")(response, request);
    });
    const { home, gateway } = served;
    const { question } = await ask(served, rests);
    const child = String(question["childSessionId"]);
    gateway.child.kill("SIGKILL");
    await gateway.ended;
    const approved = await runInside(["approve", child, String(question["callId"]), "allow"], { home });
    expect(approved).toMatchObject({ code: 0 });
    const next = await serveFrom(home);
    await isDone.opened;
    next.gateway.child.kill("SIGTERM");
    expect(await next.gateway.ended).toMatchObject({ code: 0 });
    await endedOnceWithItsSubagent(home, child);
  },
);

it("a call that a client is to run is told as that: nobody is asked about it, and it cannot be allowed", async () => {
  const server = await serveModel(openAiCall("weather", "{}"));
  const served = await serveFrom(makeHome(compatibleConfig(server)));
  const { home, gateway, url } = served;
  const completion = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-session-id": "s" },
    body: JSON.stringify({
      model: "openai-compatible/test",
      messages: [{ role: "user", content: "Weather?" }],
      tools: [{ type: "function", function: { name: "weather" } }],
    }),
  });
  expect(await completion.json()).toMatchObject({ choices: [{ finish_reason: "tool_calls" }] });
  const top = await runInside(["top", "--json"], { home });
  expect(JSON.parse(top.stdout)).toMatchObject({ session: "s", state: "awaits-result" });
  const why = await runInside(["why", "s"], { home });
  expect(why.stdout).toMatch(/asks +weather \(call call_0\), asked .* ago: its client runs it, and sends the result/);
  expect(why.stdout).toMatch(
    /next +The turn waits until its client sends the result of its call; without the client's part it is stopped at/,
  );
  expect(why.stdout).not.toMatch(/^answer/m);
  const asks = [{ callId: "call_0", awaits: "result", until: expect.any(String) as string, decision: null }];
  expect(JSON.parse((await runInside(["why", "s", "--json"], { home })).stdout)).toMatchObject({ turn: { asks } });
  expect(await runInside(["approve", "s", "call_0", "allow"], { home })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Its client runs it, and sends the result: it cannot be allowed.") as string,
  });
  const allowed = await fetch(`${url}/v1/sessions/s/approvals/call_0`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ decision: "allow" }),
  });
  expect([allowed.status, ((await allowed.json()) as { code: string }).code]).toEqual([404, "nothing_asked"]);
  const stopped = await runInside(["stop", "s"], { home });
  expect(stopped).toMatchObject({ code: 0, stderr: expect.stringContaining("waited for results of its client's") });
  gateway.child.kill("SIGTERM");
  await gateway.ended;
});
