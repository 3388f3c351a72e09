import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, startCli, startOnTerminal } from "./outside/built-cli.ts";
import type { RunningCli } from "./outside/built-cli.ts";
import {
  compatibleConfig,
  makeGate,
  openAiCall,
  openAiGatedText,
  openAiStall,
  openAiText,
  serveModel,
} from "./outside/model-server.ts";
import type { Answer } from "./outside/model-server.ts";

const demo = "model: demo/echo\n";

describe("a chat without a terminal", () => {
  it("takes each line of a pipe as one turn, one after another, in one session", async () => {
    const server = await serveModel(openAiText("one"), openAiText("two"));
    const home = makeHome(compatibleConfig(server));
    const result = await runInside(["chat", "--session", "s"], { home, stdin: "first\n\nsecond" });
    expect(result).toMatchObject({ code: 0, stdout: "one\ntwo\n" });
    expect(JSON.stringify(server.requests[1]?.body.messages)).toMatch(/first.*one.*second/);
  });

  it("prints the events of every turn with --json", async () => {
    const result = await runInside(["chat", "--session", "s", "--json"], {
      home: makeHome(demo),
      stdin: "first\nsecond\n",
    });
    expect(eventsOf(result.stdout).filter(({ type }) => type === "turn.finished")).toMatchObject([
      { outcome: "answered" },
      { outcome: "answered" },
    ]);
  });

  it("answers commands on stderr, keeps stdout for answers, and leaves at /exit", async () => {
    const stdin = "/help\nhello\n/context\n/why\n/model\n/compact\n/nonsense\n//not a command\n/exit\nnever sent\n";
    const result = await runInside(["chat", "--session", "s"], { home: makeHome(demo), stdin });
    expect(result.code).toBe(0);
    expect(result.stdout).toMatch(/^You said: hello\n[^]*You said: \/not a command\n/);
    expect(result.stdout).not.toContain("never sent");
    for (const told of [
      "/steer TEXT",
      "The model sees 2 entries",
      "Nothing runs and nothing waits",
      "The model is demo/echo.",
      "Used: about",
      "Next: it is summarised from 256,000 tokens on",
      "Summarising 2 messages",
      "Everything stays readable and searchable.",
      "There is no command /nonsense",
    ])
      expect(result.stderr).toContain(told);
  });

  it("/compact has the model summarise the session, which goes on under its id and stays searchable", async () => {
    const long = "the cat sat on the mat. ".repeat(200).trim();
    const server = await serveModel(openAiText(long), openAiText("THE SUMMARY"), openAiText("done"));
    const home = makeHome(compatibleConfig(server));
    const stdin = "tell me of the cat\n/compact\n/context\ngo on\n";
    const result = await runInside(["chat", "--session", "s"], { home, stdin });
    expect(result).toMatchObject({ code: 0, stdout: `${long}\ndone\n` });
    expect(result.stderr).toMatch(/Summarising 2 messages[^]*Summarised in [^]*It has been summarised 1 time/);
    const last = JSON.stringify(server.requests[2]?.body.messages);
    expect(last).toMatch(/THE SUMMARY[^]*tell me of the cat[^]*go on/);
    expect(last).not.toContain("sat on the mat");
    const found = await runInside(["sessions", "search", "the mat", "--json"], { home });
    expect(found.stdout).toContain("the cat sat");
    expect(await runInside(["sessions", "verify", "s"], { home })).toMatchObject({ code: 0 });
  });

  it("changes session and model between turns", async () => {
    const home = makeHome(demo);
    await runInside(["run", "remember me", "--session", "old"], { home });
    const stdin =
      "/resume old\n/model demo/tools\nWhat did I ask before?\n/new\nWhat did I ask before?\n/resume nobody\n/model acme/x\n";
    const result = await runInside(["chat", "--session", "s"], { home, stdin });
    expect(result.stdout).toContain('"remember me"');
    expect(result.stderr).toContain("Session old, 2 entries so far: remember me");
    expect(result.stderr).toContain("There is no session nobody");
    expect(result.stderr).toContain('unknown provider "acme"');
    expect(result.code).toBe(2);
  });

  it("lists the last sessions, and shows how the one that is gone on with ended", async () => {
    const home = makeHome(demo);
    await runInside(["run", `remember \u001b[2J${"日本語 ".repeat(40)}`, "--session", "old"], { home });
    const stdin = "/resume\n/resume old\n/stop\n/stop now\n/steer\n";
    const result = await runInside(["chat", "--session", "s"], { home, stdin });
    expect(result).toMatchObject({ code: 0, stdout: "" });
    const lines = result.stderr.split("\n");
    expect(lines).toContainEqual(expect.stringMatching(/^old +2 entries +1 turn .*…$/));
    expect(lines).toContainEqual(expect.stringMatching(/^Session old, 2 entries so far: .*…$/));
    expect(result.stderr).not.toContain("\u001b");
    for (const told of [
      "/resume ID goes on with one of them.",
      "You said: remember [2J",
      "Nothing runs on this session.",
      "/stop takes nothing, or the word hard.",
      "/steer needs a text.",
    ])
      expect(result.stderr).toContain(told);
    const none = await runInside(["chat"], { home: makeHome(demo), stdin: "/resume\n" });
    expect(none.stderr).toContain("There are no sessions yet.");
  });

  it("gives --input-id to its first message, which is answered once", async () => {
    const server = await serveModel(openAiText("one"), openAiText("two"));
    const home = makeHome(compatibleConfig(server));
    const args = ["chat", "--session", "s", "--input-id", "once"];
    expect(await runInside(args, { home, stdin: "first\nsecond\n" })).toMatchObject({ code: 0, stdout: "one\ntwo\n" });
    expect(await runInside(args, { home, stdin: "first\n" })).toMatchObject({ code: 0, stdout: "one\n" });
    expect(server.requests).toHaveLength(2);
  });

  it("tells a line it cannot send, goes on with the next one, and ends with that exit code", async () => {
    const stdin = Buffer.concat([Buffer.from("one\n"), Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from("two\n")]);
    const result = await runInside(["chat", "--session", "s"], { home: makeHome(demo), stdin });
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining("not valid UTF-8") });
    expect(result.stdout).toMatch(/You said: one\n[^]*You said: two\n/);
  });

  it("ends at SIGINT: the turn is stopped and no further line is taken", async () => {
    const server = await serveModel(openAiStall("half"), openAiText("never"));
    const home = makeHome(compatibleConfig(server));
    const chat = startCli(["chat", "--session", "s"], { home, stdin: "first\nsecond\n" });
    await chat.sees(/half/);
    chat.child.kill("SIGINT");
    expect(await chat.ended).toMatchObject({ code: 130, stdout: "half\n" });
    expect(server.requests).toHaveLength(1);
  });
});

async function chatWith(
  ...answers: readonly Answer[]
): Promise<{ readonly home: string; readonly chat: RunningCli; type(text: string): void }> {
  const server = await serveModel(...answers);
  const home = makeHome(compatibleConfig(server));
  const chat = startOnTerminal(["chat", "--session", "s"], { home });
  await chat.sees(/› /, "screen");
  return { home, chat, type: (text) => void chat.child.stdin.write(text) };
}

describe("a chat on a terminal", () => {
  it("shows a prompt, renders the answer, and leaves at Ctrl-D with exit 0", async () => {
    const { chat, type } = await chatWith(openAiText("# Title\n\nSome **bold** text."));
    type("hello\r");
    await chat.sees(/Title[^]*bold[^]*text\.[^]*› /, "screen");
    type("\u0004");
    expect(await chat.ended).toMatchObject({ code: 0 });
    expect(chat.screen).toContain("Title\n\nSome bold text.\n");
    expect(chat.stdout).not.toContain("**");
  });

  it("Ctrl-C stops the turn and gives the prompt back; on an empty prompt it leaves, on a full one it clears", async () => {
    const { chat, type, home } = await chatWith(openAiStall("half an answer"));
    type("hello\r");
    await chat.sees(/half an answer/, "screen");
    type("\u0003");
    await chat.sees(/interrupted \(user-stop\)[^]*› /, "screen");
    type("typed and dropped");
    await chat.sees(/typed and dropped/, "screen");
    type("\u0003");
    type("\u0003");
    expect(await chat.ended).toMatchObject({ code: 0 });
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(JSON.parse(shown.stdout)).toMatchObject({ inputs: [{ end: "interrupted" }] });
  });

  it("what is typed during a turn steers it, and the person is told", async () => {
    const { chat, type, home } = await chatWith(
      openAiCall("shell", '{"command":"until [ -e go ]; do sleep 0.05; done"}', "Working."),
      openAiText("steered answer"),
    );
    type("hello\r");
    await chat.sees(/Allow\?/, "screen");
    type("y\r");
    await chat.sees(/▸.*shell/, "screen");
    type("change of plan\r");
    await chat.sees(/handed on/, "screen");
    writeFileSync(path.join(home, "go"), "");
    await chat.sees(/steered answer[^]*› /, "screen");
    type("/exit\r");
    expect(await chat.ended).toMatchObject({ code: 0 });
    const { entries } = JSON.parse((await runInside(["sessions", "show", "s", "--json"], { home })).stdout) as {
      entries: readonly { role: string; text?: string }[];
    };
    expect(entries.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user", "assistant"]);
    expect(entries[3]?.text).toBe("change of plan");
  });

  it("a message that the turn did not take before it ended gets its own turn, and its answer is shown", async () => {
    const gate = makeGate();
    const { chat, type } = await chatWith(openAiGatedText(gate, "first ", "half"), openAiText("second answer"));
    type("hello\r");
    await chat.sees(/first/, "screen");
    type("one more thing\r");
    await chat.sees(/handed on/, "screen");
    gate.open();
    await chat.sees(/second answer/, "screen");
    type("/exit\r");
    expect(await chat.ended).toMatchObject({ code: 0 });
  });

  it("output waits while a line is being typed, and goes on when it is emptied", async () => {
    const gate = makeGate();
    const { chat, type } = await chatWith(openAiGatedText(gate, "before ", "after"));
    type("hello\r");
    await chat.sees(/before/, "screen");
    type("abc");
    await chat.sees(/› .*abc/, "screen");
    gate.open();
    type("d");
    await chat.sees(/d/, "screen");
    expect(chat.stdout).not.toContain("after");
    type("\u007f\u007f\u007f\u007f");
    await chat.sees(/after[^]*› /, "screen");
    type("\u0004");
    expect(await chat.ended).toMatchObject({ code: 0 });
  });

  it("says that it leaves once the turn has ended, and leaves then", async () => {
    const gate = makeGate();
    const { chat, type } = await chatWith(openAiGatedText(gate, "first ", "half"));
    type("hello\r");
    await chat.sees(/first/, "screen");
    type("/exit\r");
    await chat.sees(/Leaving once the turn has ended/, "screen");
    gate.open();
    expect(await chat.ended).toMatchObject({ code: 0 });
    expect(chat.screen).toContain("half");
  });

  it("asks before a command runs, shows it in full, and takes no for an answer", async () => {
    const { chat, type, home } = await chatWith(
      openAiCall("shell", '{"command":"touch made\\u001b[2K"}'),
      openAiText("As you wish."),
    );
    type("hello\r");
    await chat.sees(
      /shell asks to run:[^]*command: touch made\\u\{1b\}\[2K[^]*Allow\? \[y\]es, \[n\]o, \[a\]lways shell/,
      "screen",
    );
    type("/why\r");
    await chat.sees(/Allow\?[^]*The turn waits until somebody allows or denies it[^]*Allow\?/, "screen");
    type("what?\r");
    await chat.sees(/Allow\?[^]*what\?[^]*Allow\?/, "screen");
    type("n\r");
    await chat.sees(/As you wish/, "screen");
    type("\u0004");
    await chat.ended;
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(JSON.parse(shown.stdout)).toMatchObject({ entries: [{}, {}, { role: "tool", status: "denied" }, {}] });
  });

  it("Ctrl-D at a question leaves it open: the turn waits, and the next chat asks again", async () => {
    const { chat, type, home } = await chatWith(openAiCall("shell", '{"command":"echo ran"}'), openAiText("All done."));
    type("hello\r");
    await chat.sees(/Allow\?/, "screen");
    type("\u0004");
    expect(await chat.ended).toMatchObject({ code: 0, stdout: expect.stringContaining("The turn waits for approval") });
    const again = startOnTerminal(["chat", "--session", "s"], { home, env: { TERM: "dumb" } });
    await again.sees(/Allow\?/);
    again.child.stdin.write("\u0004");
    expect(await again.ended).toMatchObject({ code: 0 });
    const why = await runInside(["why", "s", "--json"], { home });
    expect(JSON.parse(why.stdout)).toMatchObject({ turn: { state: "suspended" } });
  });

  it("asks about an edit by showing what it changes", async () => {
    const { chat, type, home } = await chatWith(
      openAiCall("edit_file", '{"path":"notes.txt","old_text":"one\\ntwo","new_text":"one\\n2"}'),
      openAiText("Done."),
    );
    const file = path.join(home, "notes.txt");
    writeFileSync(file, "one\ntwo\n");
    type("hello\r");
    await chat.sees(
      /edit_file asks to run:\n {4}path: notes\.txt\n {5}one\n {4}-two\n {4}\+2\n[^]*Allow\? .*\[a\]lways edit_file/,
      "screen",
    );
    expect(readFileSync(file, "utf8")).toBe("one\ntwo\n");
    type("y\r");
    await chat.sees(/✓ edit_file[^]*@@ -1,2 \+1,2 @@[^]*Done\.[^]*› /, "screen");
    expect(readFileSync(file, "utf8")).toBe("one\n2\n");
    type("\u0004");
    expect(await chat.ended).toMatchObject({ code: 0 });
  });

  it("/resume goes back to a turn that waits for an answer, asks it, and shows how it goes on", async () => {
    const { chat, type, home } = await chatWith(openAiCall("shell", '{"command":"echo ran"}'), openAiText("All done."));
    type("hello\r");
    await chat.sees(/Allow\?/, "screen");
    // The chat itself, not the terminal around it.
    const { stdout } = await runInside(["sessions", "export", "s"], { home });
    process.kill(Number(/"holder":\{[^}]*"pid":(\d+)/.exec(stdout)?.[1]), "SIGKILL");
    await chat.ended;
    // Nobody can be asked here: it is told what there is, and waits for nobody.
    const piped = await runInside(["chat"], { home, stdin: "/resume s\n" });
    expect(piped).toMatchObject({ code: 0, stderr: expect.stringContaining("Session s, 2 entries so far") });
    const again = startOnTerminal(["chat"], { home });
    const typeAgain = (text: string): void => void again.child.stdin.write(text);
    await again.sees(/› /, "screen");
    typeAgain("/resume s\r");
    await again.sees(/echo ran[^]*Allow\?/, "screen");
    typeAgain("y\r");
    await again.sees(/All done\./, "screen");
    typeAgain("\u0004");
    expect(await again.ended).toMatchObject({ code: 0 });
    expect(await runInside(["sessions", "verify", "--json"], { home })).toMatchObject({ code: 0 });
  });
});
