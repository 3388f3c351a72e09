import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome, startOnTerminal } from "./outside/built-cli.ts";
import {
  compatibleConfig,
  makeGate,
  openAiCall,
  openAiGatedText,
  openAiText,
  serveModel,
} from "./outside/model-server.ts";

const escape = "\u001b";

describe("a run on a terminal", () => {
  it("spins while it waits, renders Markdown, and leaves no spinner behind", async () => {
    const gate = makeGate();
    const server = await serveModel(async (response, request) => {
      await gate.opened;
      await openAiText("- **one**\n", "- `two`\n")(response, request);
    });
    const run = startOnTerminal(["run", "go", "--session", "s"], { home: makeHome(compatibleConfig(server)) });
    await run.sees(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/);
    gate.open();
    const { stdout, code } = await run.ended;
    expect(code).toBe(0);
    expect(stdout).toContain(`${escape}[1mone${escape}[22m`);
    expect(stdout).toContain(`${escape}[36mtwo${escape}[39m`);
    // The last thing drawn over the spinner's line is its removal.
    const afterSpinner = stdout.slice(
      Math.max(...["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"].map((frame) => stdout.lastIndexOf(frame))),
    );
    expect(afterSpinner).toContain(`\r${escape}[K`);
  });

  it("asks before a command runs, and always means always", async () => {
    const server = await serveModel(
      openAiCall("shell", '{"command":"echo first"}'),
      openAiCall("shell", '{"command":"echo second"}'),
      openAiText("Both ran."),
    );
    const run = startOnTerminal(["run", "go", "--session", "s"], { home: makeHome(compatibleConfig(server)) });
    await run.sees(/Allow\?/);
    run.child.stdin.write("a\r");
    const { stdout, code } = await run.ended;
    expect(code).toBe(0);
    expect(stdout.match(/Allow\?/g)).toHaveLength(1);
    expect(stdout).toMatch(/✓[^]*first[^]*✓[^]*second[^]*Both ran\./);
  });

  it("shows what an edit changed, in colour", async () => {
    const server = await serveModel(
      openAiCall("edit_file", '{"path":"notes.txt","old_text":"two","new_text":"2\\u001b[2J"}'),
      openAiText("Done."),
    );
    const home = makeHome(compatibleConfig(server));
    writeFileSync(path.join(home, "notes.txt"), "one\ntwo\nthree\n");
    const { stdout, code } = await startOnTerminal(["run", "go", "--yes"], { home }).ended;
    expect(code).toBe(0);
    expect(stdout).toContain(`    ${escape}[36m@@ -1,3 +1,3 @@${escape}[39m`);
    expect(stdout).toContain(`    ${escape}[31m-two${escape}[39m`);
    expect(stdout).toContain(`    ${escape}[32m+2[2J${escape}[39m`);
  });

  it("Ctrl-C at the question stops the turn", async () => {
    const server = await serveModel(openAiCall("shell", '{"command":"echo first"}'), openAiText("never"));
    const run = startOnTerminal(["run", "go", "--session", "s"], { home: makeHome(compatibleConfig(server)) });
    await run.sees(/Allow\?/);
    run.child.stdin.write("\u0003");
    expect(await run.ended).toMatchObject({ code: 130, stdout: expect.stringContaining("interrupted (user-stop)") });
  });

  it("Ctrl-D at the question leaves it open: it is answered from elsewhere", async () => {
    const server = await serveModel(openAiCall("shell", '{"command":"echo first"}'), openAiText("Done."));
    const home = makeHome(compatibleConfig(server));
    const run = startOnTerminal(["run", "go", "--session", "s"], { home });
    await run.sees(/Allow\?/);
    run.child.stdin.write("\u0004");
    expect(await run.ended).toMatchObject({ code: 130, stdout: expect.stringContaining("waits for approval") });
    const why = await runInside(["why", "s"], { home });
    expect(why.stdout).toContain("turnkeeper approve s ");
  });

  it("has no colour with NO_COLOR, and neither colour nor spinner on a dumb terminal", async () => {
    const gate = makeGate();
    gate.open();
    const server = await serveModel(openAiGatedText(gate, "some **bold** ", "text"));
    const home = makeHome(compatibleConfig(server));
    const plain = await startOnTerminal(["run", "go"], { home, env: { NO_COLOR: "1" } }).ended;
    // Text marks end in m; what the spinner draws does not.
    expect(plain.stdout).not.toMatch(/\p{Cc}\[[\d;]*m/u);
    expect(plain.stdout).toContain("some **bold** text");
    const dumb = await startOnTerminal(["run", "go"], { home, env: { TERM: "dumb" } }).ended;
    expect(dumb.stdout).not.toContain(escape);
    expect(dumb.stdout).toContain("some **bold** text");
  });

  it("shows nothing of a model's control characters", async () => {
    const server = await serveModel(openAiText(`evil ${escape}]0;title\u0007 ${escape}[2Jtext`));
    const { stdout } = await startOnTerminal(["run", "go"], { home: makeHome(compatibleConfig(server)) }).ended;
    expect(stdout).toContain("evil ]0;title [2Jtext");
  });

  it("chat works on a dumb terminal too", async () => {
    const chat = startOnTerminal(["chat", "--session", "s"], {
      home: makeHome("model: demo/echo\n"),
      env: { TERM: "dumb" },
    });
    await chat.sees(/> /);
    chat.child.stdin.write("hello\r");
    await chat.sees(/You said: hello[^]*> /);
    chat.child.stdin.write("/exit\r");
    const ended = await chat.ended;
    expect(ended.code).toBe(0);
    expect(ended.stdout).not.toContain(escape);
  });

  it("top shows what runs until Ctrl-C, and gives the terminal back", async () => {
    const top = startOnTerminal(["top"], { home: makeHome() });
    await top.sees(/No turn is running\./);
    top.child.stdin.write("\u0003");
    const { stdout, code } = await top.ended;
    expect(code).toBe(0);
    expect(stdout).toContain(`${escape}[?1049l`);
  });
});
