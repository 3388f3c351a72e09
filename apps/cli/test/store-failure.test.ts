import { renameSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, runShell, startCli } from "./outside/built-cli.ts";
import { compatibleConfig, makeGate, openAiGatedText, openAiText, serveModel } from "./outside/model-server.ts";

it("a store that is moved away under a turn ends it with its code and exit 74; back in its place it works again", async () => {
  const gate = makeGate();
  const server = await serveModel(openAiGatedText(gate, "one ", "two"), openAiText("fine"));
  const home = makeHome(compatibleConfig(server));
  const run = startCli(["run", "hello", "--session", "s", "--json"], { home });
  await run.sees(/one/);
  renameSync(path.join(home, "state.db"), path.join(home, "moved.db"));
  gate.open();
  const ended = await run.ended;
  expect(eventsOf(ended.stdout).at(-1)).toMatchObject({ outcome: "failed", reason: "STORE_DELETED" });
  expect(ended).toMatchObject({
    code: 74,
    stderr: expect.stringMatching(/^turnkeeper: failed \(STORE_DELETED\): [^\n]*\n$/),
  });
  renameSync(path.join(home, "moved.db"), path.join(home, "state.db"));
  expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({ code: 0, stdout: "fine\n" });
  expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
});

it("a working folder that was deleted is told on one line, and only where it is needed", async () => {
  const home = makeHome("model: demo/echo\n");
  const gone = 'mkdir "$TURNKEEPER_HOME/gone" && cd "$TURNKEEPER_HOME/gone" && rmdir "$TURNKEEPER_HOME/gone" && ';
  expect(await runShell(`${gone} $CLI run hello`, { home })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("The current folder does not exist any more"),
  });
  expect(await runShell(`${gone} $CLI sessions list --json`, { home })).toMatchObject({ code: 0 });
});
