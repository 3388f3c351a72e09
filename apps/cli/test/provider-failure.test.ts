import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome } from "./outside/built-cli.ts";
import { compatibleConfig, httpError, openAiCall, openAiText, serveModel } from "./outside/model-server.ts";
import type { Answer } from "./outside/model-server.ts";

/** One clear line, no stack. */
const oneLine = (text: RegExp): unknown =>
  expect.stringMatching(new RegExp(`^turnkeeper: (?=.*(?:${text.source}))[^\n]*\n$`));

describe("a provider that fails", () => {
  const cut: Answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(
      `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "test", choices: [{ index: 0, delta: { content: "half" }, finish_reason: null }] })}\n\n`,
    );
    setTimeout(() => response.destroy(), 50);
  };
  const empty: Answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(
      `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "test", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`,
    );
  };
  const rows: readonly (readonly [string, Answer, string, RegExp])[] = [
    [
      "401",
      httpError(401, '{"error":{"message":"Incorrect API key","type":"invalid_request_error"}}'),
      "MODEL_AUTH",
      /key/,
    ],
    ["400", httpError(400, '{"error":{"message":"bad parameter"}}'), "MODEL_BAD_REQUEST", /bad parameter/],
    ["500, again and again", httpError(500, '{"error":{"message":"oops"}}'), "MODEL_SERVER", /provider's side/],
    [
      "HTML instead of JSON",
      httpError(200, "<html>Welcome</html>", { "content-type": "text/html" }),
      "MODEL_BAD_RESPONSE",
      /text\/html/,
    ],
    ["a stream cut midway", cut, "MODEL_STREAM_CUT", /stopped before the end/],
    ["an empty answer, again and again", empty, "MODEL_EMPTY", /empty answer|without any text/],
  ];
  for (const [name, answer, reason, told] of rows) {
    it(`${name}: the turn fails with ${reason}, exit 1, and the session is usable afterwards`, async () => {
      const broken = await serveModel(answer);
      const home = makeHome(compatibleConfig(broken));
      const result = await runInside(["run", "hello", "--session", "s", "--json"], { home });
      expect(eventsOf(result.stdout).at(-1)).toMatchObject({ outcome: "failed", reason });
      expect(result).toMatchObject({ code: 1, stderr: oneLine(told) });
      const working = await serveModel(openAiText("fine"));
      writeFileSync(path.join(home, "config.yaml"), compatibleConfig(working));
      expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({
        code: 0,
        stdout: "fine\n",
      });
      expect(JSON.stringify(working.requests[0]?.body.messages)).toContain("hello");
      expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
    });
  }

  it("429 with Retry-After is tried again after that time, and says so", async () => {
    const server = await serveModel(
      httpError(429, '{"error":{"message":"slow down"}}', { "content-type": "application/json", "retry-after": "1" }),
      openAiText("fine"),
    );
    const home = makeHome(compatibleConfig(server));
    const result = await runInside(["run", "hello", "--session", "s"], { home });
    expect(result).toMatchObject({
      code: 0,
      stdout: "fine\n",
      stderr: expect.stringMatching(/Trying again in 1\.[0-5] s/),
    });
  });

  it("nobody listening: exit 1 and the address", async () => {
    // A port that was just free: nobody listens there.
    const { url, close } = await serveModel(openAiText("never"));
    await close();
    const home = makeHome(`model: openai-compatible/x\nproviders:\n  openai-compatible: { base_url: "${url}" }\n`);
    const result = await runInside(["run", "hello", "--session", "s", "--json"], { home });
    expect(eventsOf(result.stdout).at(-1)).toMatchObject({ outcome: "failed", reason: "MODEL_UNREACHABLE" });
    expect(result).toMatchObject({ code: 1, stderr: oneLine(/127\.0\.0\.1/) });
  });
});

describe("a model that calls tools badly", () => {
  for (const [name, call, told] of [
    ["arguments that are no JSON", openAiCall("list_files", '{"path": '), "not valid JSON"],
    ["arguments of the wrong shape", openAiCall("list_files", '{"path": 7}'), "do not fit"],
    ["a tool that does not exist", openAiCall("fly", "{}"), "There is no tool named"],
    ["a file that is not there", openAiCall("read_file", '{"path":"missing.txt"}'), "missing.txt"],
  ] as const) {
    it(`${name}: the model is told, and the turn goes on`, async () => {
      const server = await serveModel(call, openAiText("I see."));
      const home = makeHome(compatibleConfig(server));
      const result = await runInside(["run", "go", "--session", "s", "--yes"], { home });
      expect(result).toMatchObject({ code: 0, stdout: "I see.\n" });
      expect(JSON.stringify(server.requests[1]?.body.messages)).toContain(told);
    });
  }

  it("a tool that floods its output is cut, and the turn goes on", async () => {
    const server = await serveModel(
      openAiCall("shell", '{"command":"yes flood | head -c 20000000"}'),
      openAiText("I see."),
    );
    const home = makeHome(compatibleConfig(server));
    expect(await runInside(["run", "go", "--session", "s", "--yes"], { home })).toMatchObject({
      code: 0,
      stdout: "I see.\n",
    });
    expect(JSON.stringify(server.requests[1]?.body).length).toBeLessThan(200_000);
  });
});
