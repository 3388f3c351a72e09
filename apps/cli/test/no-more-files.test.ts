/** File descriptors run out: the command ends with one explanation, whatever part of it met the end of them. */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, runShell, startCli } from "./outside/built-cli.ts";
import { compatibleConfig, openAiCall, openAiText, serveModel } from "./outside/model-server.ts";

describe("a process that may open no more files", { timeout: 180_000 }, () => {
  it("says so on one line and ends with 74, as soon as Node can load the program at all", async () => {
    const home = makeHome("model: demo/echo\n");
    let refusedCount = 0;
    // From where the program itself does not fit, to where all of it does.
    for (const limit of [21, 24, 26, 28, 30, 32, 64, 256])
      for (const command of ["run hello --session s", "sessions list", "sessions list --debug"]) {
        const { code, stdout, stderr } = await runShell(`ulimit -n ${limit}; $CLI ${command}`, { home });
        if (code === 0) continue;
        refusedCount++;
        expect({ limit, command, code, stdout }).toEqual({ limit, command, code: 74, stdout: "" });
        expect(stderr).toMatch(/^turnkeeper: [^\n]*this process may open no more files[^\n]*ulimit -n[^\n]*\n/);
        expect(stderr).not.toContain("please report it");
      }
    expect(refusedCount).toBeGreaterThan(8);
    expect(await runInside(["sessions", "verify", "--json"], { home })).toMatchObject({ code: 0 });
  });

  it("in the middle of a turn: the turn ends in a code that says what to raise, and all before it is stored", async () => {
    const server = await serveModel(async (response, request) => {
      response.setHeader("connection", "close");
      // Fewer than it has open: not one more, neither a connection nor a file.
      spawnSync("prlimit", ["--pid", String(cli.pid), "--nofile=10:10"]);
      await openAiCall("list_files", "{}", "I look.")(response, request);
    }, openAiText("fine"));
    const home = makeHome(compatibleConfig(server));
    const cli = startCli(["run", "hello", "--session", "s", "--json"], { home });
    const { code, stdout, stderr } = await cli.ended;
    expect(eventsOf(stdout).at(-1)).toMatchObject({
      type: "turn.finished",
      outcome: "failed",
      reason: "MODEL_UNREACHABLE",
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/\(EMFILE\).* raise the limit \(ulimit -n\)/);
    expect(await runInside(["sessions", "verify", "--json"], { home })).toMatchObject({
      code: 0,
      stdout: '{"violations":[]}\n',
    });
    expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({ code: 0, stdout: "fine\n" });
    expect(JSON.stringify(server.requests.at(-1)?.body.messages)).toContain("I look.");
  });
});
