import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, runCli, runShell, startCli } from "./outside/built-cli.ts";
import type { CliResult } from "./outside/built-cli.ts";
import { compatibleConfig, makeGate, openAiGatedText, openAiText, serveModel } from "./outside/model-server.ts";

/** What a user would type next, of everything that a command printed. */
function nextOf({ stdout, stderr }: Pick<CliResult, "stdout" | "stderr">): readonly string[] {
  return `${stdout}\n${stderr}`.split("\n").flatMap((line) => {
    const [, next] = /^\s*next: (.*)$/.exec(line) ?? [];
    return next === undefined ? [] : [next];
  });
}

interface Scene {
  readonly home: string;
  readonly storePath: string;
  /** What the turn was told when the store failed. */
  readonly ended: CliResult;
  /** Types a command as it was printed. */
  readonly type: (command: string) => Promise<CliResult>;
  readonly texts: () => Promise<readonly string[]>;
  /** What the model was asked last. */
  readonly asked: () => string;
}

/** One answered turn, and a second in whose middle something happens to the store. */
async function play(happens: (storePath: string, home: string) => void): Promise<Scene> {
  const gate = makeGate();
  const server = await serveModel(
    openAiText("first answer"),
    openAiGatedText(gate, "second ", "answer"),
    openAiText("third answer"),
  );
  const home = makeHome(compatibleConfig(server));
  const storePath = path.join(home, "state.db");
  expect(await runCli(["run", "first", "--session", "s"], { home })).toMatchObject({ code: 0 });
  const run = startCli(["run", "second", "--session", "s", "--json"], { home });
  await run.sees(/second/);
  happens(storePath, home);
  gate.open();
  return {
    home,
    storePath,
    ended: await run.ended,
    type: (command) => runShell(command.replace(/(^|&& )turnkeeper /g, "$1$CLI "), { home }),
    texts: async () => {
      const { stdout } = await runInside(["sessions", "show", "s", "--json"], { home });
      const { entries } = JSON.parse(stdout) as {
        readonly entries: readonly { readonly role: string; readonly text?: string }[];
      };
      return entries.map(({ role, text }) => `${role}: ${text ?? ""}`);
    },
    asked: () => JSON.stringify(server.requests.at(-1)?.body.messages),
  };
}

/** What a process saved of the store on another day, and nobody cleared away: the first turn is in it, no more. */
function layOldRescue(storePath: string): void {
  const folder = `${storePath}-rescued`;
  mkdirSync(folder);
  copyFileSync(storePath, path.join(folder, "state.db"));
  writeFileSync(path.join(folder, "state.db-wal"), "");
}

const conversation = [
  "user: first",
  "assistant: first answer",
  "user: second",
  "assistant: second answer",
  "user: third",
  "assistant: third answer",
];

/** The next turn goes on as if nothing had been. */
async function goesOn({ home, texts, asked }: Scene): Promise<void> {
  expect(await runCli(["run", "third", "--session", "s"], { home })).toMatchObject({
    code: 0,
    stdout: "third answer\n",
  });
  expect(await texts()).toEqual(conversation);
  expect(asked()).toContain("second answer");
  expect(await runInside(["sessions", "verify", "--json"], { home })).toMatchObject({
    code: 0,
    stdout: '{"violations":[]}\n',
  });
  expect(existsSync(path.join(home, "state.db-spool"))).toBe(false);
}

function endsWith({ ended }: Scene, code: RegExp): void {
  expect(ended.code).toBe(74);
  expect(eventsOf(ended.stdout).at(-1)).toMatchObject({
    outcome: "failed",
    reason: expect.stringMatching(code),
    text: "second answer",
  });
  const [told, next, ...others] = ended.stderr.trimEnd().split("\n");
  expect(told).toMatch(/^turnkeeper: failed \(STORE_[A-Z]+\): .* is kept in \S+-spool\/s\.jsonl, and comes back/);
  expect(next).toMatch(/^next: /);
  expect(others).toEqual([]);
}

describe("a store that is damaged under a turn", { timeout: 180_000 }, () => {
  it("by dd over its pages: recovered by the commands as printed, it goes on with the conversation", async () => {
    const scene = await play((storePath) => {
      const database = new Database(storePath, { readonly: true });
      const page = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'turn'").pluck().get() as number;
      database.close();
      for (const seek of [0, page - 1])
        spawnSync("dd", ["if=/dev/urandom", `of=${storePath}`, "bs=4096", `seek=${seek}`, "count=1", "conv=notrunc"]);
    });
    endsWith(scene, /^STORE_CORRUPT$/);
    const [inspect = ""] = nextOf(scene.ended);
    expect(inspect).toBe(`turnkeeper sessions recover --source ${scene.storePath} --inspect-only`);
    const [recover = ""] = nextOf(await scene.type(inspect));
    const [verify = "", move = ""] = nextOf(await scene.type(recover));
    expect(await scene.type(verify)).toMatchObject({ code: 0 });
    expect(await scene.type(move)).toMatchObject({ code: 0, stderr: "" });
    await goesOn(scene);
  });

  it("by mv of another file over it: what it held was saved, and comes back by the command as printed", async () => {
    const scene = await play((storePath, home) => {
      copyFileSync(storePath, path.join(home, "copy.db"));
      renameSync(path.join(home, "copy.db"), storePath);
    });
    endsWith(scene, /^STORE_REPLACED$/);
    const [command = ""] = nextOf(scene.ended);
    expect(await scene.type(command)).toMatchObject({ code: 0 });
    expect(existsSync(`${scene.storePath}-replaced/state.db`)).toBe(true);
    expect(existsSync(`${scene.storePath}-rescued`)).toBe(false);
    await goesOn(scene);
  });

  it("by rm of the -shm, beside what was saved on another day: that stays where it is", async () => {
    const scene = await play((storePath) => {
      layOldRescue(storePath);
      rmSync(`${storePath}-shm`);
    });
    endsWith(scene, /^STORE_DELETED$/);
    const [command = ""] = nextOf(scene.ended);
    expect(command).toBe(`turnkeeper sessions verify --store ${scene.storePath}`);
    expect(await scene.type(command)).toMatchObject({ code: 0 });
    const { stdout } = await scene.type("turnkeeper doctor");
    expect(stdout).toMatch(/note {2}rescued: \S+-rescued has the store as it was at \S+ \S+, when it was deleted/);
    await goesOn(scene);
    expect(existsSync(`${scene.storePath}-rescued/state.db`)).toBe(true);
  });

  it("by rm of the file, beside what was saved on another day: what was saved now comes back", async () => {
    const scene = await play((storePath) => {
      layOldRescue(storePath);
      rmSync(storePath);
    });
    endsWith(scene, /^STORE_DELETED$/);
    const [command = ""] = nextOf(scene.ended);
    expect(command).toContain(`${scene.storePath}-rescued-2/state.db`);
    expect(await scene.type(command)).toMatchObject({ code: 0 });
    await goesOn(scene);
    expect(existsSync(`${scene.storePath}-rescued/state.db`)).toBe(true);
  });

  it("by rm of all its files: no new one is made in its place, and doctor tells how it comes back", async () => {
    const scene = await play((storePath) => {
      for (const suffix of ["", "-wal", "-shm"]) rmSync(`${storePath}${suffix}`);
    });
    endsWith(scene, /^STORE_DELETED$/);
    const refused = await scene.type("turnkeeper run third --session s");
    expect(refused).toMatchObject({ code: 74, stdout: "" });
    expect(refused.stderr).toMatch(/the file is missing or empty, .*: \S+-rescued, \S+-spool\. /);
    const [ask = ""] = nextOf(refused);
    const asked = await scene.type(ask);
    expect(asked.code).toBe(1);
    const command = nextOf(asked).find((line) => line.includes("-rescued")) ?? "";
    expect(await scene.type(command)).toMatchObject({ code: 0 });
    await goesOn(scene);
  });

  it("by rm of the WAL: it is put back, and the store has all that was said", async () => {
    const scene = await play((storePath) => rmSync(`${storePath}-wal`));
    endsWith(scene, /^STORE_DELETED$/);
    const [command = ""] = nextOf(scene.ended);
    expect(await scene.type(command)).toMatchObject({ code: 0, stderr: expect.stringContaining("no violation") });
    await goesOn(scene);
  });

  it("by rm of the WAL under a chat: it says so, and the next chat goes on", async () => {
    const gate = makeGate();
    const server = await serveModel(
      openAiText("first answer"),
      openAiGatedText(gate, "second ", "answer"),
      openAiText("third answer"),
    );
    const home = makeHome(compatibleConfig(server));
    const chat = startCli(["chat", "--session", "s"], { home, stdin: "first\nsecond\n" });
    await chat.sees(/second/);
    rmSync(path.join(home, "state.db-wal"));
    gate.open();
    const ended = await chat.ended;
    expect(ended.stderr).toMatch(/failed \(STORE_DELETED\): [^\n]*\nnext: turnkeeper sessions verify --store \S+\n/);
    const next = await runCli(["chat", "--session", "s"], { home, stdin: "third\n" });
    expect(next).toMatchObject({ code: 0, stdout: expect.stringContaining("third answer") });
    expect(JSON.stringify(server.requests.at(-1)?.body.messages)).toContain("second answer");
    expect(await runInside(["sessions", "verify", "--json"], { home })).toMatchObject({
      stdout: '{"violations":[]}\n',
    });
  });
});
