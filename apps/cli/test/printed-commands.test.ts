/** Whatever a message tells a user to type is understood by the program that prints it. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it } from "vitest";
import { nextAfterViolations, nextStep, steppedCodes } from "../src/next-step.ts";
import { doctorCommand, repairCommand } from "../src/printed-command.ts";
import { runInside } from "./inside/command-line.ts";
import type { InsideResult } from "./inside/command-line.ts";
import { makeHome, startCli } from "./outside/built-cli.ts";

const sources = fileURLToPath(new URL("../src", import.meta.url));

let home = "";
let storePath = "";

beforeEach(async () => {
  // A path that a shell would take apart.
  home = path.join(makeHome(), "it's a home");
  mkdirSync(home);
  storePath = path.join(home, "state.db");
  expect(await runInside(["run", "hello", "--session", "s", "--model", "demo/echo"], { home })).toMatchObject({
    code: 0,
  });
}, 60_000);

/** The words that a shell makes of a command, without running it. */
function wordsOf(command: string): readonly string[] {
  const { stdout, status } = spawnSync("bash", ["-c", `printf '%s\\0' ${command}`], { encoding: "utf8" });
  expect(status).toBe(0);
  return stdout.split("\0").slice(0, -1);
}

/** Runs a printed command; it must be one that the program knows, whatever comes of it. */
async function isUnderstood(command: string): Promise<void> {
  const [program, ...args] = wordsOf(command);
  expect(program).toBe("turnkeeper");
  const { code, stderr } = await runInside(args, { home, stdin: "hello" });
  expect(code === 2 ? { command, stderr } : undefined).toBeUndefined();
}

/** What of a line is for the program, and not for the shell beside it. */
const commandsIn = (line: string): readonly string[] =>
  line.split(" && ").filter((one) => one.startsWith("turnkeeper "));

it(
  "the next step of each code names the store as a shell takes it, and is understood",
  { timeout: 120_000 },
  async () => {
    let count = 0;
    for (const code of steppedCodes) {
      const { next = "" } = (await nextStep(code, { path: storePath, home })) ?? {};
      expect(next, `${code}`).not.toBe("");
      for (const command of commandsIn(next)) {
        await isUnderstood(command);
        expect(wordsOf(command)).toContain(storePath);
        count++;
      }
    }
    expect(count).toBeGreaterThanOrEqual(steppedCodes.length - 1);
    const found = { violations: [{ rule: "DERIVED" }, { rule: "PAIR-1" }], left: [] };
    for (const command of [
      doctorCommand({ path: storePath, home }),
      repairCommand(storePath, "s"),
      ...nextAfterViolations(storePath, found),
    ])
      await isUnderstood(command);
  },
);

it("no code has a raw shell of SQLite for a next step", async () => {
  for (const code of steppedCodes)
    expect((await nextStep(code, { path: storePath }))?.next).toEqual(expect.not.stringMatching(/sqlite3/));
});

/** A command as it is written in a source, up to where the sentence goes on; what is filled in is left open. */
const written =
  /turnkeeper ((?:sessions |config |store )?[a-z]+)((?: (?:--[a-z-]+|\$\{(?:[^{}]|\{[^}]*\})*\}|ID|"[^"`]*"|s|first(?:\.jsonl)?|call-1|allow|README|recovered\.db|\d+)(?![a-z]))*)/g;

const groups: ReadonlySet<string> = new Set(["sessions", "config", "store"]);
const alone: ReadonlySet<string> = new Set(["run", "chat", "why", "stop", "approve", "top", "doctor"]);
const inSessions: ReadonlySet<string> = new Set(
  "list show search export import delete verify repair recover".split(" "),
);

/** The command with something for each place that is left open. */
function filledIn(head: string, rest: string): string {
  if (head === "store copy") return `turnkeeper ${head} "${storePath}" '${path.join(makeHome(), "new.db")}'`;
  const filled = rest.replaceAll(
    /(--(?:store|source|output|home) )?\$\{(?:[^{}]|\{[^}]*\})*\}/g,
    (_all, flag?: string) => {
      if (flag === undefined) return "s";
      return flag.startsWith("--output") ? `${flag}'${path.join(makeHome(), "new.db")}'` : `${flag}"${storePath}"`;
    },
  );
  return `turnkeeper ${head}${filled.replaceAll("ID", "s")}`;
}

it("every command in a message, a help text or a hint is understood", { timeout: 300_000 }, async () => {
  const commands = new Set<string>();
  for (const name of readdirSync(sources, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts")) continue;
    const text = readFileSync(path.join(sources, name), "utf8").replaceAll(/^\s*(?:\/?\*|\/\/).*$/gm, "");
    for (const [, head = "", rest = ""] of text.matchAll(written)) {
      const [first = "", second = ""] = head.split(" ");
      const isCommand = groups.has(first) ? first !== "sessions" || inSessions.has(second) : alone.has(first);
      // What is incomplete in the source, because the sentence is about the command, is no command to type.
      const isWhole =
        second === "" ||
        !["show", "export", "import", "delete", "search", "copy"].includes(second) ||
        rest !== "" ||
        first === "config";
      if (isCommand && isWhole && !(["why", "stop", "approve"].includes(first) && rest === ""))
        commands.add(filledIn(head, rest));
    }
  }
  expect(commands.size).toBeGreaterThan(15);
  for (const command of commands) {
    if (command === "turnkeeper sessions recover" || command.includes("first.jsonl")) continue;
    await isUnderstood(command);
  }
});

describe("a command that is printed about a store that was named", { timeout: 120_000 }, () => {
  /** The commands in what was printed, as they stand: at the end of a line, whatever is said before. */
  const printedIn = (text: string): readonly string[] =>
    text.split("\n").flatMap((line) => /(?:^|: )(turnkeeper .*)$/.exec(line)?.[1] ?? []);

  /** Types it where the default store is another one, which it must leave alone. */
  async function type(command: string): Promise<InsideResult> {
    const [, ...args] = wordsOf(command);
    return runInside(args, { home, stdin: "" });
  }

  it("works on that one: an import that finds its id, and a deletion that finds a holder", async () => {
    const other = path.join(home, "other store.db");
    const named = ["--store", "other store.db"];
    const { stdout: exported } = await runInside(["sessions", "export", "s"], { home });
    const read = ["sessions", "import", "-", ...named];
    expect(await runInside(read, { home, stdin: exported })).toMatchObject({ code: 0 });
    const again = await runInside(read, { home, stdin: exported });
    expect(again.code).toBe(1);
    const [deletion = ""] = printedIn(again.stderr);
    expect(wordsOf(deletion)).toEqual(["turnkeeper", "sessions", "delete", "s", "--store", other]);
    expect(await type(deletion)).toMatchObject({ code: 0 });
    expect(await runInside(["sessions", "show", "s"], { home })).toMatchObject({ code: 0 });
    expect(await runInside(["sessions", "show", "s", ...named], { home })).toMatchObject({ code: 1 });

    const run = ["run", "hello", "--session", "s", "--model", "demo/silent", "--json", "--store", other];
    const holder = startCli(run, { home });
    await holder.sees(/turn\.started/);
    const held = await runInside(["sessions", "delete", "s", "--yes", ...named], { home });
    expect(held).toMatchObject({ code: 75, stderr: expect.stringMatching(/Stop its turn first\.\nnext: /) });
    const [stop = ""] = printedIn(held.stderr);
    expect(wordsOf(stop)).toEqual(["turnkeeper", "stop", "s", "--store", other]);
    expect(await type(stop)).toMatchObject({ code: 0 });
    expect((await holder.ended).code).toBe(130);
  });

  it("works on that one, with the settings of the home that was named: why, and a store that is not there", async () => {
    const elsewhere = path.join(home, "else where");
    const model = ["--model", "demo/echo"];
    expect(await runInside(["run", "hi", "--session", "t", "--home", "else where", ...model], { home })).toMatchObject({
      code: 0,
    });
    const { stdout } = await runInside(["why", "t", "--home", "else where"], { home });
    const [start = ""] = printedIn(stdout);
    const there = ["--home", elsewhere, "--store", path.join(elsewhere, "state.db")];
    expect(wordsOf(start)).toEqual(["turnkeeper", "run", "…", "--session", "t", ...there]);
    expect(await type(`${start} --model demo/echo`)).toMatchObject({ code: 0 });
    expect((await runInside(["sessions", "show", "t", "--home", elsewhere], { home })).stdout).toContain("said: …");

    const missing = await runInside(["sessions", "list", "--store", "new.db"], { home });
    expect(missing.code).toBe(74);
    const [make = ""] = printedIn(missing.stderr);
    expect(await type(`${make} --model demo/echo`)).toMatchObject({ code: 0 });
    expect(await runInside(["sessions", "list", "--store", "new.db"], { home })).toMatchObject({ code: 0 });

    mkdirSync(path.join(elsewhere, "folder.db"));
    const refused = await runInside(
      ["sessions", "list", "--home", "else where", "--store", path.join(elsewhere, "folder.db")],
      { home },
    );
    expect(printedIn(refused.stderr).map(wordsOf)).toEqual([
      ["turnkeeper", "doctor", "--home", elsewhere, "--store", path.join(elsewhere, "folder.db")],
    ]);
  });
});
