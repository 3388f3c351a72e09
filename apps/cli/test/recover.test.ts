import { closeSync, existsSync, openSync, readdirSync, writeSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import type { InsideResult } from "./inside/command-line.ts";
import { makeHome, runShell, startCli } from "./outside/built-cli.ts";

let home = "";
const run = (...args: readonly string[]): Promise<InsideResult> => runInside(args, { home });
const storePath = (): string => path.join(home, "state.db");

beforeEach(async () => {
  home = makeHome("model: demo/tools\ntools: { approval: allow }\n");
  for (const number of [1, 2, 3])
    expect(await run("run", `Run echo ${number}`, "--session", "s")).toMatchObject({ code: 0 });
}, 60_000);

/** Overwrites the first page and the root of a table, in a store that nobody has open. */
function damage(table: string): void {
  const database = new Database(storePath());
  const page = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").pluck().get(table) as number;
  database.close();
  const file = openSync(storePath(), "r+");
  for (const number of [1, page]) writeSync(file, Buffer.alloc(4096, 0x55), 0, 4096, (number - 1) * 4096);
  closeSync(file);
}

/** What a command line says next, without the words before it. */
function nextOf(stdout: string): string[] {
  return stdout.split("\n").flatMap((line) => (line.startsWith("next: ") ? [line.slice(6)] : []));
}

/** The arguments of a printed command, which none of the tests' paths needs quotes for. */
function argumentsOf(command: string): string[] {
  const [program, ...args] = command.split(" ");
  expect(program).toBe("turnkeeper");
  return args;
}

describe("sessions recover", { timeout: 120_000 }, () => {
  it("needs to be told what to make, exit 2", async () => {
    for (const flags of [[], ["--inspect-only", "--output", "new.db"], ["--output", ""]])
      expect(await run("sessions", "recover", "--source", storePath(), ...flags)).toMatchObject({
        code: 2,
        stdout: "",
      });
  });

  it("leads from a damaged store to one that goes on with the conversation, by the commands it prints", async () => {
    damage("turn");
    expect(await run("run", "hello", "--session", "s")).toMatchObject({ code: 74 });
    const inspected = await run("sessions", "recover", "--source", storePath(), "--inspect-only");
    expect(inspected).toMatchObject({ code: 1, stderr: expect.stringContaining("pages read") });
    const [recoverCommand = ""] = nextOf(inspected.stdout);
    const recovered = await run(...argumentsOf(recoverCommand));
    expect(recovered).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/unread: page \d+[^]*mended: s: [^]*recovered into /),
    });
    const [verifyCommand = "", moveCommand = ""] = nextOf(recovered.stdout);
    expect(await run(...argumentsOf(verifyCommand))).toMatchObject({ code: 0 });
    expect(await runShell(moveCommand, { home })).toMatchObject({ code: 0, stderr: "" });
    expect(existsSync(`${storePath()}-damaged/state.db`)).toBe(true);
    expect(readdirSync(home).filter((name) => name.includes("recovered"))).toEqual([]);
    expect(await run("run", "Run echo again", "--session", "s")).toMatchObject({ code: 0 });
    const { stdout } = await run("sessions", "show", "s");
    for (const text of ["Run echo 1", "Run echo 3", "Run echo again"]) expect(stdout).toContain(text);
    expect(await run("sessions", "verify")).toMatchObject({ code: 0 });
  });

  it("answers 0 and says so when nothing is lost, as one JSON object with --json", async () => {
    const output = path.join(home, "new.db");
    const { code, stdout } = await run("sessions", "recover", "--output", output, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      output,
      isComplete: true,
      source: { path: storePath() },
      tables: expect.arrayContaining([expect.objectContaining({ table: "turn", foundCount: 3, broughtCount: 3 })]),
      next: [expect.stringMatching(/^turnkeeper sessions verify --store /), expect.stringMatching(/^mkdir /)],
    });
    expect(await run("sessions", "recover", "--output", output)).toMatchObject({ code: 74, stdout: "" });
  });

  it("leaves a store alone that a process uses: exit 75, and it says which", async () => {
    const holder = startCli(["run", "hello", "--session", "t", "--model", "demo/silent", "--json"], { home });
    await holder.sees(/turn\.started/);
    const output = path.join(home, "new.db");
    expect(await run("sessions", "recover", "--output", output)).toMatchObject({
      code: 75,
      stdout: "",
      stderr: expect.stringContaining(path.join(home, "run")),
    });
    holder.child.kill("SIGKILL");
    await holder.ended;
    expect(await run("sessions", "recover", "--output", output)).toMatchObject({ code: 0 });
  });
});
