import path from "node:path";
import { expect, test } from "vitest";
import { createShellTool } from "../src/index.ts";
import { deps, rejection, workbench } from "./workbench.ts";

const shell = createShellTool(deps);

test("the answer is the output and the exit code", async () => {
  const { context } = await workbench();
  expect(await shell.execute({ command: "echo hello" }, context)).toBe("hello\n[exit code 0]");
});

test("a non-zero exit is an answer, not an error", async () => {
  const { context } = await workbench();
  expect(await shell.execute({ command: "exit 3" }, context)).toBe("(no output)\n[exit code 3]");
});

test("a command that a signal ended says which", async () => {
  const { context } = await workbench();
  expect(await shell.execute({ command: "kill -KILL $$" }, context)).toBe("(no output)\n[ended by signal SIGKILL]");
});

test("standard output and standard error come in the order in which they were written", async () => {
  const { context } = await workbench();
  const command = "for n in 1 2 3 4 5 6 7 8 9; do echo out$n; echo err$n >&2; done";
  const expected = Array.from({ length: 9 }, (_, index) => `out${index + 1}\nerr${index + 1}\n`).join("");
  expect(await shell.execute({ command }, context)).toBe(`${expected}[exit code 0]`);
});

test("a command runs in the workspace, with bash", async () => {
  const { context, folder } = await workbench();
  const answer = await shell.execute({ command: 'pwd; [[ abc == a* ]] && echo "${BASH_VERSION:+bash}"' }, context);
  expect(answer).toBe(`${folder}\nbash\n[exit code 0]`);
});

test("where there is no bash, sh runs the command", async () => {
  const { context } = await workbench();
  const withoutBash = createShellTool({ ...deps, environment: { PATH: path.join(context.workspace, "empty") } });
  expect(await withoutBash.execute({ command: 'echo "$0"' }, context)).toBe("/bin/sh\n[exit code 0]");
});

test("the input is closed and there is no terminal to ask on", async () => {
  const { context } = await workbench();
  const answer = await shell.execute({ command: "cat; { : </dev/tty; } 2>/dev/null || echo none" }, context);
  expect(answer).toBe("none\n[exit code 0]");
});

test("a syntax error is told by the shell itself", async () => {
  const { context } = await workbench();
  expect(await shell.execute({ command: "if then" }, context)).toMatch(/syntax error[\s\S]*\[exit code 2\]$/);
});

test("invalid UTF-8 and NUL in the output are replaced", async () => {
  const { context } = await workbench();
  expect(await shell.execute({ command: String.raw`printf 'a\377b\000c \303\244'` }, context)).toBe(
    "a\uFFFDb\uFFFDc ä\n[exit code 0]",
  );
});

test("output moves the turn's clock, silence does not", async () => {
  const silent = await workbench();
  await shell.execute({ command: "true" }, silent.context);
  expect(silent.moveCount()).toBe(0);
  const loud = await workbench();
  await shell.execute({ command: "echo one" }, loud.context);
  expect(loud.moveCount()).toBeGreaterThan(0);
});

test("a command that cannot be started says why and that nothing ran", async () => {
  const { context } = await workbench();
  const missing = path.join(context.workspace, "gone");
  const noFolder = await rejection(shell.execute({ command: "true" }, { ...context, workspace: missing }));
  expect(noFolder).toMatchObject({ code: "COMMAND_NOT_STARTED" });
  expect(noFolder.message).toContain(missing);
  const tooLong = await rejection(shell.execute({ command: `: ${"x".repeat(200_000)}` }, context));
  expect(tooLong).toMatchObject({ code: "COMMAND_NOT_STARTED" });
  expect(tooLong.message).toMatch(/too long/);
  const withNul = await rejection(shell.execute({ command: "echo a\0b" }, context));
  expect(withNul).toMatchObject({ code: "COMMAND_NOT_STARTED" });
});
