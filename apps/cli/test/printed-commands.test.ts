/** Whatever a message tells a user to type is understood by the program that prints it. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, it } from "vitest";
import { doctorCommand, nextAfterViolations, nextStep, repairCommand, steppedCodes } from "../src/next-step.ts";
import { runInside } from "./inside/command-line.ts";
import { makeHome } from "./outside/built-cli.ts";

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
});

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

/** What is typed of a line: without who is to be ended first, and what a shell does beside. */
const commandsIn = (step: string): readonly string[] =>
  step
    .replace(/^end .*, then: /, "")
    .split(" && ")
    .filter((one) => one.startsWith("turnkeeper "));

it(
  "the next step of each code names the store as a shell takes it, and is understood",
  { timeout: 120_000 },
  async () => {
    let count = 0;
    for (const code of steppedCodes) {
      const step = (await nextStep(code, storePath)) ?? "";
      expect(step, `${code}`).not.toBe("");
      for (const command of commandsIn(step)) {
        await isUnderstood(command);
        expect(wordsOf(command)).toContain(storePath);
        count++;
      }
    }
    expect(count).toBeGreaterThanOrEqual(steppedCodes.length - 1);
    const found = { violations: [{ rule: "DERIVED" }, { rule: "PAIR-1" }], left: [] };
    for (const command of [
      doctorCommand(storePath),
      repairCommand(storePath, "s"),
      ...nextAfterViolations(storePath, found),
    ])
      await isUnderstood(command);
  },
);

it("no code has a raw shell of SQLite for a next step", async () => {
  for (const code of steppedCodes) expect(await nextStep(code, storePath)).not.toMatch(/sqlite3/);
});

/** A command as it is written in a source, up to where the sentence goes on; what is filled in is left open. */
const written =
  /turnkeeper ((?:sessions |config )?[a-z]+)((?: (?:--[a-z-]+|\$\{(?:[^{}]|\{[^}]*\})*\}|ID|"[^"`]*"|s|first(?:\.jsonl)?|README|recovered\.db|\d+)(?![a-z]))*)/g;

const groups: ReadonlySet<string> = new Set(["sessions", "config"]);
const alone: ReadonlySet<string> = new Set(["run", "chat", "why", "stop", "approve", "top", "doctor"]);
const inSessions: ReadonlySet<string> = new Set(
  "list show search export import delete verify repair recover".split(" "),
);

/** The command with something for each place that is left open. */
function filledIn(head: string, rest: string): string {
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
      const isCommand = groups.has(first) ? first === "config" || inSessions.has(second) : alone.has(first);
      // What is incomplete in the source, because the sentence is about the command, is no command to type.
      const isWhole =
        second === "" ||
        !["show", "export", "import", "delete", "search"].includes(second) ||
        rest !== "" ||
        first === "config";
      if (isCommand && isWhole && !(["why", "stop"].includes(first) && rest === "")) commands.add(filledIn(head, rest));
    }
  }
  expect(commands.size).toBeGreaterThan(15);
  for (const command of commands) {
    if (command === "turnkeeper sessions recover" || command.includes("first.jsonl")) continue;
    await isUnderstood(command);
  }
});
