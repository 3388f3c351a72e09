import { expect, test } from "vitest";
import { createShellTool } from "../src/index.ts";
import { deps, workbench, turnMarkerName } from "./workbench.ts";

const environment = {
  PATH: process.env["PATH"],
  LC_ALL: "C",
  OPENAI_API_KEY: "canary",
  ANTHROPIC_API_KEY: "canary",
  TURNKEEPER_HOME: "canary",
  GITHUB_TOKEN: "canary",
  BASH_ENV: "canary",
  NODE_OPTIONS: "canary",
  UNSET: undefined,
};

test("a command gets an allowed part of the environment, and no key or token", async () => {
  const { context } = await workbench();
  const answer = await createShellTool({ ...deps, environment }).execute({ command: "env" }, context);
  expect(answer).not.toContain("canary");
  expect(answer).toMatch(/^PATH=/m);
  expect(answer).toMatch(/^LC_ALL=C$/m);
});

test("a variable that the embedder names is passed on", async () => {
  const { context } = await workbench();
  const shell = createShellTool({ ...deps, environment }, { passEnvironment: ["GITHUB_TOKEN", "UNSET"] });
  expect(await shell.execute({ command: 'echo "$GITHUB_TOKEN${UNSET-unset}"' }, context)).toBe(
    "canaryunset\n[exit code 0]",
  );
});

test("every process of a call carries the turn's marker and a marker of the call", async () => {
  const { context, turnId } = await workbench();
  const command = `sh -c 'echo "$${turnMarkerName} $TURNKEEPER_CALL"'`;
  const shell = createShellTool(deps);
  const [first, second] = await Promise.all([shell.execute({ command }, context), shell.execute({ command }, context)]);
  expect(first).toMatch(new RegExp(`^${turnId} \\w{26}\n`));
  expect(second).toMatch(new RegExp(`^${turnId} \\w{26}\n`));
  expect(first).not.toBe(second);
});
