/** A store whose file is gone is not taken for one that never was, as long as anything of it lies where it was. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import type { InsideResult } from "./inside/command-line.ts";
import { makeHome, startCli } from "./outside/built-cli.ts";

let home = "";
let storePath = "";
const run = (...args: readonly string[]): Promise<InsideResult> => runInside(args, { home });

beforeEach(async () => {
  home = makeHome("model: demo/echo\n");
  storePath = path.join(home, "state.db");
  expect(await run("run", "hello", "--session", "s")).toMatchObject({ code: 0 });
}, 60_000);

/** A log with rows, as a process that is killed leaves it. */
async function leaveLog(): Promise<void> {
  const killed = startCli(["run", "again", "--session", "s", "--model", "demo/silent", "--json"], { home });
  await killed.sees(/turn\.started/);
  killed.child.kill("SIGKILL");
  await killed.ended;
  expect(statSync(`${storePath}-wal`).size).toBeGreaterThan(0);
}

const commands: readonly (readonly string[])[] = [
  ["sessions", "list"],
  ["sessions", "show", "s"],
  ["sessions", "search", "hello"],
  ["sessions", "export", "s"],
  ["sessions", "delete", "s", "--yes"],
  ["sessions", "verify"],
  ["sessions", "repair"],
  ["why", "s"],
  ["stop", "s"],
  ["top"],
  ["run", "hello", "--session", "s"],
  ["chat", "--session", "s"],
];

async function expectRefusal(named: readonly string[]): Promise<void> {
  const before = readdirSync(home).toSorted();
  for (const command of commands) {
    const { code, stdout, stderr } = await run(...command, ...named);
    expect({ command, code, stdout }).toEqual({ command, code: 74, stdout: "" });
    expect(stderr).toMatch(/^turnkeeper: Could not open the store \S+: the file is missing or empty, [^\n]*\nnext: /);
    expect(stderr).toContain(`next: turnkeeper doctor --store ${storePath}\n`);
  }
  expect(readdirSync(home).toSorted()).toEqual(before);
  const { code, stdout } = await run("doctor", ...named);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^wrong store: \S+ \([^)]*\): the file is missing or empty, /m);
  expect(stdout).not.toContain("it is made when");
}

describe("a store whose file is missing", { timeout: 120_000 }, () => {
  it("is refused by every command while rows of it are in its log; back in its place it has them all", async () => {
    await leaveLog();
    renameSync(storePath, path.join(home, "moved.db"));
    await expectRefusal([]);
    await expectRefusal(["--store", storePath]);
    renameSync(path.join(home, "moved.db"), storePath);
    expect(await run("sessions", "repair")).toMatchObject({ code: 0 });
    expect((await run("sessions", "show", "s")).stdout).toMatch(/hello[^]*again/);
    expect(await run("sessions", "verify", "--json")).toMatchObject({ stdout: '{"violations":[]}\n' });
  });

  it("is refused while steps that it had refused wait beside it, and copies that were saved or laid aside", async () => {
    rmSync(storePath);
    for (const suffix of ["-spool", "-rescued", "-replaced-2", "-damaged"]) {
      mkdirSync(`${storePath}${suffix}`);
      await expectRefusal([]);
      rmSync(`${storePath}${suffix}`, { recursive: true });
    }
  });

  it("is refused when the file was emptied", async () => {
    truncateSync(storePath, 0);
    mkdirSync(`${storePath}-spool`);
    writeFileSync(path.join(`${storePath}-spool`, "s.jsonl"), "");
    await expectRefusal([]);
  });

  it("reads as an empty one where nothing is left, and the next message makes it", async () => {
    rmSync(storePath);
    expect(await run("sessions", "list", "--json")).toMatchObject({ code: 0, stdout: '{"sessions":[]}\n' });
    expect(existsSync(storePath)).toBe(false);
    expect((await run("doctor")).stdout).toMatch(
      /^note {2}store: none at .*\n\s+next: it is made when the first message/m,
    );
    expect(await run("run", "hello", "--session", "s")).toMatchObject({ code: 0 });
  });
});
