/** What a chat and a real terminal do to each other. What is drawn in detail is tested on a terminal in memory. */
import { spawnSync } from "node:child_process";
import { readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it, vi } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome, startBesideTerminal, startOnTerminal, startShellOnTerminal } from "./outside/built-cli.ts";
import type { RunningCli } from "./outside/built-cli.ts";
import { compatibleConfig, openAiCall, openAiStall, openAiText, serveModel } from "./outside/model-server.ts";

const demo = "model: demo/echo\n";
const isLinux = process.platform === "linux";

function type(cli: RunningCli, text: string): void {
  cli.child.stdin.write(text);
}

/** What `script` runs: its only child. */
function programOf(script: RunningCli): number {
  return Number.parseInt(readFileSync(`/proc/${script.pid}/task/${script.pid}/children`, "utf8"), 10);
}

describe("a chat on a terminal", () => {
  it("takes a message of several lines, pasted or with a backslash, and finds it again in the next chat", async () => {
    const home = makeHome(demo);
    const first = startOnTerminal(["chat", "--session", "s"], { home });
    await first.sees(/› /, "screen");
    type(first, "\u001b[200~one\ntwo\u001b[201~\\\rthree\r");
    await first.sees(/You said: one\ntwo\nthree[^]*› /, "screen");
    type(first, "\u0004");
    expect(await first.ended).toMatchObject({ code: 0 });
    expect(statSync(path.join(home, "chat-history.jsonl")).mode & 0o777).toBe(0o600);

    const second = startOnTerminal(["chat", "--session", "s"], { home });
    await second.sees(/› /, "screen");
    type(second, "\u0012tw");
    await second.sees(/search: tw/, "screen");
    type(second, "\r");
    await second.sees(/You said: one\ntwo\nthree[^]*› /, "screen");
    type(second, "\u0004");
    expect(await second.ended).toMatchObject({ code: 0 });
    // The terminal gets back what it was asked for.
    expect(second.stdout.lastIndexOf("\u001b[?2004l")).toBeGreaterThan(second.stdout.lastIndexOf("\u001b[?2004h"));
  });

  // Where the terminal of a process is, /proc tells.
  it.runIf(isLinux)("is drawn anew when the terminal is resized", async () => {
    const chat = startOnTerminal(["chat", "--session", "s"], { home: makeHome(demo) });
    await chat.sees(/› /, "screen");
    type(chat, "the quick brown fox jumps over the lazy dog");
    await chat.sees(/lazy dog/, "screen");
    const terminal = readlinkSync(`/proc/${programOf(chat)}/fd/0`);
    expect(spawnSync("stty", ["-F", terminal, "columns", "24", "rows", "10"]).status).toBe(0);
    await chat.sees(/› the quick brown fox j\n {2}umps over the lazy do\n {2}g/, "screen");
    type(chat, "\r");
    await chat.sees(/You said: the quick brown fox jumps over the lazy dog/, "screen");
    type(chat, "\u0004");
    expect(await chat.ended).toMatchObject({ code: 0 });
  });

  it("is stopped by Ctrl-Z, leaves the shell a sane terminal, and goes on with fg where it was", async () => {
    const shell = startShellOnTerminal({ home: makeHome(demo) });
    await shell.sees(/shell> /, "screen");
    type(shell, "$CLI chat --session s\n");
    await shell.sees(/› /, "screen");
    type(shell, "half a mess");
    await shell.sees(/half a mess/, "screen");
    type(shell, "\u001a");
    await shell.sees(/Stopped[^]*shell> /, "screen");
    type(shell, "stty -a | grep -o ' icanon' && echo again\n");
    await shell.sees(/ icanon\nagain/, "screen");
    type(shell, "fg\n");
    await shell.sees(/\$CLI chat[^]*fg\n[^]*› half a mess/, "screen");
    type(shell, "age\r");
    await shell.sees(/You said: half a message[^]*› /, "screen");
    type(shell, "\u0004");
    await shell.sees(/shell> $/, "screen");
    type(shell, "exit\n");
    expect(await shell.ended).toMatchObject({ code: 0 });
  });

  it("Ctrl-C twice stops at once what does not heed the first, and the chat goes on", async () => {
    const server = await serveModel(
      openAiCall("shell", '{"command":"trap \'\' INT TERM; touch started; while :; do sleep 0.1; done"}'),
      openAiText("fine"),
    );
    const home = makeHome(compatibleConfig(server));
    const chat = startOnTerminal(["chat", "--session", "s", "--yes"], { home });
    await chat.sees(/› /, "screen");
    type(chat, "go\r");
    await chat.sees(/▸.*shell/, "screen");
    type(chat, "\u0003\u0003");
    await chat.sees(/interrupted \(user-stop\)[^]*› /, "screen");
    type(chat, "again\r");
    await chat.sees(/fine[^]*› /, "screen");
    type(chat, "\u0004");
    expect(await chat.ended).toMatchObject({ code: 0 });
    expect(await runInside(["sessions", "verify", "s"], { home })).toMatchObject({ code: 0 });
  });

  it.each([
    ["that goes away", startOnTerminal],
    ["that goes away without a signal", startBesideTerminal],
  ])("a terminal %s ends the turn as shutdown; the session is free", async (_how, start) => {
    const server = await serveModel(openAiStall("half an answer"), openAiText("fine"));
    const home = makeHome(compatibleConfig(server));
    const chat = start(["chat", "--session", "s"], { home });
    await chat.sees(/› /, "screen");
    type(chat, "go\r");
    await chat.sees(/half an answer/, "screen");
    chat.child.kill("SIGKILL");
    await chat.ended;
    // Waits for the session.
    expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({ code: 0, stdout: "fine\n" });
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    const { turns } = JSON.parse(shown.stdout) as { readonly turns: readonly { readonly reason?: string }[] };
    expect(turns.map(({ reason }) => reason)).toEqual(["shutdown", undefined]);
  });
});

describe("a terminal that goes away", () => {
  it.each(["chat", "run go"])("lets %s come to its own end, and dumps no core", async (command) => {
    const server = await serveModel(openAiCall("shell", '{"command":"true"}'), openAiText("never asked for"));
    const home = makeHome(compatibleConfig(server));
    const shell = startShellOnTerminal({ home });
    await shell.sees(/shell> /, "screen");
    // The shell in between outlives the terminal, to tell how the program ended.
    type(shell, `(trap '' HUP; $CLI ${command} --session s; echo $? > status)\n`);
    if (command === "chat") {
      await shell.sees(/› /, "screen");
      type(shell, "go\r");
    }
    await shell.sees(/Allow\?/, "screen");
    shell.child.kill("SIGKILL");
    await shell.ended;
    const status = path.join(home, "status");
    await vi.waitFor(() => expect(readFileSync(status, "utf8")).toMatch(/\n$/), { timeout: 20_000 });
    expect(readFileSync(status, "utf8")).toBe(command === "chat" ? "0\n" : "130\n");
    expect(await runInside(["why", "s"], { home })).toMatchObject({ stdout: expect.stringContaining("asks") });
  });
});

describe("a chat on a dumb terminal", () => {
  it("takes lines as the system edits them, goes on behind a backslash, and sends no sequence", async () => {
    const server = await serveModel(
      openAiCall("edit_file", '{"path":"notes.txt","old_text":"two","new_text":"2"}'),
      openAiText("As \u001b[2Jyou wish."),
    );
    const home = makeHome(compatibleConfig(server));
    writeFileSync(path.join(home, "notes.txt"), "one\ntwo\n");
    const chat = startOnTerminal(["chat", "--session", "s"], { home, env: { TERM: "dumb" } });
    await chat.sees(/> $/);
    type(chat, "first\\\n");
    await chat.sees(/\. $/);
    type(chat, "second\n");
    await chat.sees(/Allow\?/);
    type(chat, "y\n");
    await chat.sees(/As \[2Jyou wish\.[^]*> $/);
    type(chat, "\u0004");
    const { code, stdout } = await chat.ended;
    expect(code).toBe(0);
    expect(stdout).not.toContain("\u001b");
    expect(stdout).toContain("    -two\r\n    +2\r\n");
    expect(JSON.stringify(server.requests[0]?.body.messages)).toContain("first\\nsecond");
  });

  it("Ctrl-C stops the turn; at the prompt it leaves", async () => {
    const server = await serveModel(openAiStall("half an answer"));
    const chat = startOnTerminal(["chat", "--session", "s"], {
      home: makeHome(compatibleConfig(server)),
      env: { TERM: "dumb" },
    });
    await chat.sees(/> $/);
    type(chat, "go\n");
    await chat.sees(/half an answer/);
    type(chat, "\u0003");
    await chat.sees(/interrupted \(user-stop\)[^]*> $/);
    type(chat, "\u0003");
    expect(await chat.ended).toMatchObject({ code: 0 });
  });
});
