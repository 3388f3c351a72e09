import { chmodSync, existsSync, statSync } from "node:fs";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import type { InsideResult } from "./inside/command-line.ts";
import { makeHome, startCli } from "./outside/built-cli.ts";

let home = "";
const run = (...args: readonly string[]): Promise<InsideResult> => runInside(args, { home });
const storePath = (): string => path.join(home, "state.db");

beforeEach(async () => {
  home = makeHome("model: demo/tools\ntools: { approval: allow }\n");
  expect(await run("run", "Run echo hi", "--session", "s")).toMatchObject({ code: 0 });
});

function damage(sql: string): void {
  const database = new Database(storePath());
  database.exec(sql);
  database.close();
}

async function withStore<T>(work: (store: StateStore) => Promise<T>): Promise<T> {
  const store = await openSqliteStore(storePath(), { host: systemHost });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

interface Told {
  readonly violations?: readonly { readonly rule: string; readonly detail: string }[];
  readonly mends?: readonly { readonly detail: string }[];
  readonly left?: readonly { readonly detail: string; readonly next: string }[];
}

const told = (result: InsideResult): Told => JSON.parse(result.stdout) as Told;

/** The commands that were printed to be typed. */
const commands = (text: string): readonly string[] =>
  text
    .split("\n")
    .flatMap((line) => (line.startsWith("next: turnkeeper ") ? [line.slice("next: turnkeeper ".length)] : []));

describe("verify and repair", { timeout: 60_000 }, () => {
  it("name what is derived and wrong, and one repair, as printed, puts it right", async () => {
    damage("UPDATE session SET tool_call_count = 7, first_text = 'other'; UPDATE store SET last_input_seq = 0");
    const found = await run("sessions", "verify", "--json");
    expect(found.code).toBe(1);
    expect(told(found).violations?.map(({ rule }) => rule)).toEqual(["DERIVED", "DERIVED", "DERIVED"]);
    const plan = await run("sessions", "repair", "--dry-run", "--json");
    expect(plan).toMatchObject({ code: 0, stderr: `next: turnkeeper sessions repair --store ${storePath()}\n` });
    expect(told(plan)).toMatchObject({ isDryRun: true, left: [] });
    expect(told(plan).mends?.map(({ detail }) => detail)).toEqual(told(found).violations?.map(({ detail }) => detail));
    expect(told(await run("sessions", "verify", "--json"))).toEqual(told(found));
    const [command = ""] = commands(found.stderr);
    expect(await run(...command.split(" "), "--json")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("tool_call_count"),
    });
    expect(await run("sessions", "verify", "--json")).toMatchObject({ code: 0, stdout: '{"violations":[]}\n' });
    expect(told(await run("sessions", "repair", "--json"))).toEqual({ mends: [], left: [] });
  });

  it("meet damage in one session and go on with the next; what cannot be mended leads to a recovery", async () => {
    await run("run", "hello", "--session", "t", "--model", "demo/echo");
    damage(
      "UPDATE entry SET body = '{' WHERE seq = 2 AND session_no = (SELECT session_no FROM session WHERE session_id = 's')",
    );
    damage("DELETE FROM entry WHERE seq = 1 AND session_no = (SELECT session_no FROM session WHERE session_id = 't')");
    const found = await run("sessions", "verify", "--json");
    expect(found.code).toBe(1);
    const details = told(found).violations?.map(({ rule, detail }) => `${rule} ${detail}`) ?? [];
    expect(details).toContainEqual(expect.stringMatching(/^APPEND-3 .*entry.body \(seq 2, key /));
    expect(details).toContainEqual(expect.stringMatching(/^INBOX-1 input .* its user entry is missing/));
    const repaired = await run("sessions", "repair");
    expect(repaired).toMatchObject({ code: 1, stdout: expect.stringMatching(/^left {2}s .*\n?/m) });
    for (const command of [...commands(found.stderr), ...commands(repaired.stderr)])
      expect((await run(...command.split(" "))).code).not.toBe(2);
    expect(repaired.stderr).toContain(`next: turnkeeper sessions recover --source ${storePath()} --inspect-only`);
  });

  it("settle what a dead process left: its turn, its lease, and the inputs that it was to run", async () => {
    const holder = startCli(["run", "hello", "--session", "x", "--model", "demo/silent", "--json"], { home });
    await holder.sees(/turn\.started/);
    const waiter = startCli(["run", "second", "--session", "x", "--model", "demo/silent", "--json"], { home });
    await waiter.sees(/turn\.waiting/);
    expect(await run("sessions", "repair", "--json")).toMatchObject({ code: 0, stdout: '{"mends":[],"left":[]}\n' });
    holder.child.kill("SIGSTOP");
    waiter.child.kill("SIGKILL");
    await waiter.ended;
    holder.child.kill("SIGKILL");
    await holder.ended;
    const verified = await run("sessions", "verify", "--json");
    expect(verified).toMatchObject({ code: 0 });
    expect(told(verified)).toMatchObject({ violations: [], left: [{ detail: expect.stringContaining("has died") }] });
    const plan = await run("sessions", "repair", "x", "--dry-run");
    expect(plan).toMatchObject({ code: 0, stderr: expect.stringContaining("2 mends, 0 left; nothing was changed.\n") });
    expect(plan.stdout).toMatch(/^would mend {2}x {2}the lease with .* has died: its turn is settled$/m);
    expect(plan.stdout).toMatch(/^would mend {2}x {2}input \S+ is to be run by pid \d+, which has died/m);
    const repaired = await run("sessions", "repair", "x");
    expect(repaired.code).toBe(0);
    expect(repaired.stdout).toMatch(
      /mended {2}x {2}turn \S+ of pid \d+ is settled as crashed, with inputs \[\S+\] and open calls \[\]/,
    );
    expect(repaired.stdout).toMatch(/mended {2}x {2}input \S+ was to be run by pid \d+, which has died/);
    expect(await run("sessions", "verify", "--json")).toMatchObject({ stdout: '{"violations":[]}\n' });
    expect(await run("sessions", "repair", "--json")).toMatchObject({ code: 0, stdout: '{"mends":[],"left":[]}\n' });
  });

  it("bring back what a store had refused; what it cannot place stays, and is told", async () => {
    const body = { role: "assistant", parts: [{ type: "text", text: "was refused" }] } as const;
    await withStore(async (store) => {
      const [turn] = (await store.sessions.records("s"))?.turns ?? [];
      if (!turn) throw new Error("The session has no turn.");
      const grant = { sessionId: "s", holderId: turn.holder.holderId, fencingToken: turn.fencingToken };
      await store.spool.keep({ grant, turnId: turn.turnId, entries: [{ key: "late", body }] });
      await store.spool.keep({ grant, turnId: "unknown", entries: [{ key: "lost", body }] });
    });
    const repaired = await run("sessions", "repair", "--json");
    expect(repaired.code).toBe(1);
    expect(told(repaired)).toMatchObject({
      mends: [{ detail: expect.stringContaining("1 step that the store had refused is back") }],
      left: [
        {
          detail: expect.stringMatching(/^SPOOL-1: \S+ has steps of turn unknown, which this store does not know/),
          next: expect.stringMatching(/^turnkeeper sessions recover --source \S+ --inspect-only$/),
        },
      ],
    });
    expect((await run("sessions", "show", "s")).stdout).toContain("was refused");
  });

  it("tell what came back with the end of a turn that its process could not store before it died", async () => {
    const holder = startCli(["run", "hello", "--session", "x", "--model", "demo/silent", "--json"], { home });
    await holder.sees(/turn\.started/);
    const turnId = await withStore(async (store) => {
      const [running] = await store.turns.running("x");
      if (!running) throw new Error("Nothing runs.");
      const { turn } = running;
      const grant = { sessionId: "x", holderId: turn.holder.holderId, fencingToken: turn.fencingToken };
      const body = { role: "assistant", parts: [{ type: "text", text: "was refused" }] } as const;
      const entries = [{ key: "answer", body }];
      await store.spool.keep({ grant, turnId: turn.turnId, entries });
      await store.spool.keep({
        grant,
        turnId: turn.turnId,
        entries: [],
        end: { outcome: "failed", reason: "STORE_FULL" },
      });
      return turn.turnId;
    });
    holder.child.kill("SIGKILL");
    await holder.ended;
    const { mends = [], left } = told(await run("sessions", "repair", "--json"));
    expect(left).toEqual([]);
    expect(mends.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(new RegExp(`^turn ${turnId} of pid ${holder.pid} is settled as failed, as its end tells`)),
      expect.stringMatching(/^2 steps that the store had refused are back from \S+\/x\.jsonl$/),
    ]);
    expect((await run("sessions", "show", "x")).stdout).toContain("was refused");
    expect(told(await run("sessions", "repair", "--json"))).toEqual({ mends: [], left: [] });
  });

  it("wait for a live holder with what is spooled: exit 75", async () => {
    const holder = startCli(["run", "hello", "--session", "x", "--model", "demo/silent", "--json"], { home });
    await holder.sees(/turn\.started/);
    await withStore(async (store) => {
      const [turn] = (await store.sessions.records("x"))?.turns ?? [];
      const grant = { sessionId: "x", holderId: "h", fencingToken: 1 };
      await store.spool.keep({ grant, turnId: turn?.turnId ?? "", entries: [] });
    });
    for (const flags of [["--dry-run"], []])
      expect(await run("sessions", "repair", ...flags)).toMatchObject({
        code: 75,
        stderr: expect.stringContaining(`next: turnkeeper sessions repair x --store ${storePath()}`),
      });
  });

  it("take the files from other users, and make nothing where nothing is", async () => {
    chmodSync(storePath(), 0o644);
    expect(await run("sessions", "repair")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("had mode 644, and has 600 now"),
    });
    expect(statSync(storePath()).mode & 0o777).toBe(0o600);
    const empty = makeHome();
    expect(await runInside(["sessions", "repair", "--json"], { home: empty })).toMatchObject({
      code: 0,
      stdout: '{"mends":[],"left":[]}\n',
    });
    expect(existsSync(path.join(empty, "state.db"))).toBe(false);
    expect(await run("sessions", "repair", "nobody")).toMatchObject({ code: 1 });
  });
});
