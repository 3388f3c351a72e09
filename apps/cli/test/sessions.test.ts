import path from "node:path";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import type { InsideResult } from "./inside/command-line.ts";
import { eventsOf, makeHome, startCli } from "./outside/built-cli.ts";

let home = "";
const run = (...args: readonly string[]): Promise<InsideResult> => runInside(args, { home });

beforeEach(() => {
  home = makeHome("model: demo/tools\ntools: { approval: allow }\n");
});

describe("a session in the store", () => {
  it("is shown as one JSON object: id, inputs with their ends, entries with their roles", async () => {
    await run("run", "Run echo hi", "--session", "s", "--input-id", "in-1");
    const { stdout, code } = await run("sessions", "show", "s", "--json");
    expect(code).toBe(0);
    const shown = JSON.parse(stdout) as { entries: readonly { role: string }[] };
    expect(shown).toMatchObject({
      session: "s",
      inputs: [{ inputId: "in-1", end: "answered", at: expect.stringMatching(/Z$/), state: "settled" }],
      turns: [{ state: "ended", outcome: "answered" }],
    });
    expect(shown.entries.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(shown.entries[0]).toMatchObject({
      text: "Run echo hi",
      inputId: "in-1",
      at: expect.stringMatching(/Z$/),
      turnId: expect.any(String),
    });
    expect(shown.entries[1]).toMatchObject({
      toolCalls: [{ name: "shell", callId: expect.any(String), input: { command: "echo hi" } }],
    });
    expect(shown.entries[2]).toMatchObject({
      name: "shell",
      status: "ok",
      output: expect.stringContaining("hi"),
      callId: expect.any(String),
    });
    expect(shown.entries[3]).toMatchObject({ text: expect.stringContaining("hi"), model: "demo/tools" });
  });

  it("is shown to people as a conversation", async () => {
    await run("run", "Run echo hi", "--session", "s");
    const { stdout } = await run("sessions", "show", "s");
    expect(stdout).toMatch(/user\nRun echo hi\n[^]*▸ shell echo hi\n[^]*✓ shell hi/);
  });

  it("is listed, the last changed first, in pages", async () => {
    for (const session of ["one", "two", "three"])
      await run("run", "hello", "--session", session, "--model", "demo/echo");
    const first = JSON.parse((await run("sessions", "list", "--json", "--limit", "2")).stdout) as {
      sessions: readonly { sessionId: string }[];
      nextCursor: string;
    };
    expect(first.sessions.map(({ sessionId }) => sessionId)).toEqual(["three", "two"]);
    const second = JSON.parse(
      (await run("sessions", "list", "--json", "--limit", "2", "--cursor", first.nextCursor)).stdout,
    ) as typeof first;
    expect(second.sessions.map(({ sessionId }) => sessionId)).toEqual(["one"]);
    expect(second).not.toHaveProperty("nextCursor");
    expect((await run("sessions", "list")).stdout).toMatch(
      /^three +2 entries +1 turn +.*changed [-\d]+ [:\d]+ +hello$/m,
    );
  });

  it("tells its title, its last entry and what it has used, in the list and when it is shown", async () => {
    await run("run", "Run echo hi", "--session", "s");
    const { sessions } = JSON.parse((await run("sessions", "list", "--json")).stdout) as {
      sessions: readonly unknown[];
    };
    const facts = {
      title: "Run echo hi",
      lastEntry: { at: expect.stringMatching(/Z$/), role: "assistant" },
      totals: { turnCount: 1, toolCallCount: 1, inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
    };
    expect(sessions).toEqual([expect.objectContaining({ sessionId: "s", ...facts })]);
    expect(JSON.parse((await run("sessions", "show", "s", "--json")).stdout)).toMatchObject({ session: "s", ...facts });
    expect((await run("sessions", "show", "s")).stderr).toMatch(/^Run echo hi · 1 turn, 1 tool call, .* in, .* out\n$/);
  });

  it("is shown from its end, page by page", async () => {
    for (const message of ["one", "two", "three"]) await run("run", message, "--session", "s", "--model", "demo/echo");
    const page = async (...flags: readonly string[]) =>
      JSON.parse((await run("sessions", "show", "s", "--json", ...flags)).stdout) as {
        entries: readonly { role: string; text: string }[];
        nextBefore?: number;
      };
    const last = await page("--last", "3");
    expect(last.entries).toMatchObject([{ role: "assistant" }, { text: "three" }, { role: "assistant" }]);
    const earlier = await page("--last", "3", "--before", String(last.nextBefore));
    expect(earlier.entries).toMatchObject([{ text: "one" }, { role: "assistant" }, { text: "two" }]);
    expect(earlier).not.toHaveProperty("nextBefore");
    expect((await page("--before", String(last.nextBefore))).entries).toEqual(earlier.entries);
    expect((await page()).entries).toEqual([...earlier.entries, ...last.entries]);
    expect((await run("sessions", "show", "s", "--last", "1")).stderr).toMatch(/Earlier: --last 1 --before \d+\n$/);
    for (const flag of ["--last", "--before"])
      expect(await run("sessions", "show", "s", flag, "0")).toMatchObject({ code: 2 });
  });

  it("is found by a text in it", async () => {
    await run("run", "where is the needle?", "--session", "s", "--model", "demo/echo");
    await run("run", "nothing here", "--session", "t", "--model", "demo/echo");
    const { hits } = JSON.parse((await run("sessions", "search", "needle", "--json")).stdout) as {
      hits: readonly unknown[];
    };
    expect(hits).toMatchObject([
      { session: "s", entry: { role: "assistant" } },
      { session: "s", entry: { role: "user" }, snippet: "where is the needle?" },
    ]);
    const first = JSON.parse((await run("sessions", "search", "needle THE", "--json", "--limit", "1")).stdout) as {
      hits: readonly unknown[];
      nextCursor: string;
    };
    const second = await run("sessions", "search", "needle THE", "--json", "--cursor", first.nextCursor);
    expect([...first.hits, ...(JSON.parse(second.stdout) as { hits: readonly unknown[] }).hits]).toEqual(hits);
    expect(second.stdout).not.toContain("nextCursor");
    expect(await run("sessions", "search", "needle", "--limit", "1")).toMatchObject({
      stderr: `More: --cursor ${first.nextCursor}\n`,
    });
    for (const command of [["search", "needle"], ["list"]])
      expect(await run("sessions", ...command, "--cursor", "x")).toMatchObject({
        code: 2,
        stderr: 'turnkeeper: Cannot use --cursor "x": no page ended there.\n',
      });
    expect(await run("sessions", "search", "needle", "--session", "t")).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "Nothing found.\n",
    });
  });

  it("is exported as JSON Lines with a version, complete", async () => {
    await run("run", "Run echo hi", "--session", "s");
    const lines = eventsOf((await run("sessions", "export", "s")).stdout);
    expect(lines[0]).toMatchObject({
      type: "session",
      format: "turnkeeper-session",
      version: 1,
      sessionId: "s",
      fencingToken: 1,
    });
    expect(lines.map(({ type }) => type)).toEqual([
      "session",
      "input",
      "turn",
      "entry",
      "entry",
      "entry",
      "entry",
      "end",
    ]);
    for (const line of lines.slice(3, -1))
      expect(line).toMatchObject({ key: expect.any(String), digest: expect.any(String), body: expect.any(Object) });
  });

  it("is deleted, once", async () => {
    await run("run", "hello", "--session", "s", "--model", "demo/echo");
    expect(await run("sessions", "delete", "s", "--yes")).toMatchObject({ code: 0 });
    expect(await run("sessions", "delete", "s", "--yes")).toMatchObject({
      code: 1,
      stderr: "turnkeeper: There is no session s in this store.\n",
    });
  });

  it("is not deleted while it is held: exit 75", async () => {
    const holder = startCli(["run", "hello", "--session", "s", "--model", "demo/silent", "--json"], { home });
    await holder.sees(/turn\.started/);
    expect(await run("sessions", "delete", "s", "--yes")).toMatchObject({
      code: 75,
      stderr: expect.stringContaining(`held by pid ${holder.pid}`),
    });
    holder.child.kill("SIGKILL");
    await holder.ended;
    // Its process is dead: it holds nothing any more.
    expect(await run("sessions", "delete", "s", "--yes")).toMatchObject({ code: 0 });
  });

  it("that does not exist is told on one line with exit 1", async () => {
    for (const command of ["show", "export", "verify"]) {
      expect(await run("sessions", command, "nobody")).toMatchObject({
        code: 1,
        stdout: "",
        stderr: "turnkeeper: There is no session nobody in this store.\n",
      });
    }
  });
});

describe("verify", () => {
  it("answers 0 and an empty list for a clean store", async () => {
    await run("run", "Run echo hi", "--session", "s");
    expect(await run("sessions", "verify", "--json")).toMatchObject({ code: 0, stdout: '{"violations":[]}\n' });
    expect(await run("sessions", "verify", "s")).toMatchObject({ code: 0, stdout: "" });
  });

  it("names rule, session and detail of what is broken, with exit 1", async () => {
    await run("run", "Run echo hi", "--session", "s");
    await run("run", "hello", "--session", "t", "--model", "demo/echo");
    const database = new Database(path.join(home, "state.db"));
    // Bit rot: content that is no longer what was stored.
    database.prepare("UPDATE entry SET body = replace(body, 'echo hi', 'echo ho') WHERE body LIKE '%tool-call%'").run();
    database.close();
    const { code, stdout } = await run("sessions", "verify", "--json");
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      violations: [{ rule: "APPEND-3", session: "s", detail: expect.any(String) }],
    });
    expect(await run("sessions", "verify", "t")).toMatchObject({ code: 0 });
  });
});

describe("a store that is not there yet", () => {
  it("reads as an empty one, and is not made by looking", async () => {
    expect(await run("sessions", "list", "--json")).toMatchObject({ code: 0, stdout: '{"sessions":[]}\n' });
    expect(await run("sessions", "verify", "--json")).toMatchObject({ code: 0, stdout: '{"violations":[]}\n' });
    expect(await run("top")).toMatchObject({ code: 0, stderr: "No turn is running.\n" });
    expect(await run("why", "s")).toMatchObject({ code: 1 });
    expect(JSON.parse((await run("doctor", "--json")).stdout)).toMatchObject({
      ok: true,
      checks: expect.arrayContaining([
        { name: "store", status: "note", found: expect.stringContaining("yet"), next: expect.any(String) },
      ]),
    });
  });
});
