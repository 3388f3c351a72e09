import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome, runShell } from "./outside/built-cli.ts";
import {
  compatibleConfig,
  openAiGatedText,
  makeGate,
  openAiStall,
  openAiText,
  serveModel,
} from "./outside/model-server.ts";

describe("a closed stdout", () => {
  it("ends a run quietly while the model still talks, and the session works afterwards", async () => {
    const server = await serveModel(
      openAiStall(...Array.from({ length: 2000 }, (_, index) => `line ${index}\n`)),
      openAiText("fine"),
    );
    const home = makeHome(compatibleConfig(server));
    const piped = await runShell('$CLI run go --session s | head -1; echo "code ${PIPESTATUS[0]}"', { home });
    expect(piped).toMatchObject({ stdout: "line 0\ncode 0\n", stderr: expect.not.stringMatching(/EPIPE|Error|at /) });
    expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({ code: 0, stdout: "fine\n" });
    expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
  });

  it("ends a long listing quietly", async () => {
    const server = await serveModel(openAiText("x".repeat(400_000)));
    const home = makeHome(compatibleConfig(server));
    await runInside(["run", "go", "--session", "s"], { home });
    const piped = await runShell('$CLI sessions export s | head -c 10; echo; echo "code ${PIPESTATUS[0]}"', { home });
    expect(piped).toMatchObject({ stdout: '{"type":"s\ncode 0\n', stderr: "" });
  });

  it("closed before anything was written changes nothing but that nobody hears", async () => {
    const server = await serveModel(openAiText("unheard"));
    const home = makeHome(compatibleConfig(server));
    const result = await runShell("$CLI run go --session s >&-; echo code $?", { home });
    expect(result).toMatchObject({ stdout: "code 0\n", stderr: expect.not.stringMatching(/EPIPE|EBADF|at /) });
  });

  it("a reader that is slow gets every byte of a large answer before the process ends", async () => {
    const gate = makeGate();
    gate.open();
    const server = await serveModel(openAiGatedText(gate, "y".repeat(700_000), "z".repeat(700_000)));
    const home = makeHome(compatibleConfig(server));
    const result = await runShell("$CLI run go --session s | (sleep 1; wc -c)", { home });
    expect(result.stdout.trim()).toBe("1400001");
  });

  it("a full disk behind stdout is told, with exit 1", async () => {
    const server = await serveModel(openAiText("lost"));
    const home = makeHome(compatibleConfig(server));
    const result = await runShell("$CLI run go --session s > /dev/full; echo code $?", { home });
    expect(result).toMatchObject({ stdout: "code 1\n", stderr: "turnkeeper: Could not write the result (ENOSPC).\n" });
  });
});
