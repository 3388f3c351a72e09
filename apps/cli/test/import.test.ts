import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { digestOf } from "@turnkeeper/state-store";
import type { Grant, StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { beforeEach, describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import type { InsideResult } from "./inside/command-line.ts";
import { makeHome } from "./outside/built-cli.ts";

let home = "";
let other = "";
const run = (...args: readonly string[]): Promise<InsideResult> => runInside(args, { home });
const elsewhere = (...args: readonly string[]): Promise<InsideResult> => runInside(args, { home: other });
const exported = async (): Promise<string> => (await run("sessions", "export", "s")).stdout;

beforeEach(() => {
  home = makeHome("model: demo/tools\ntools: { approval: allow }\n");
  other = makeHome("model: demo/tools\ntools: { approval: allow }\n");
});

const identity = { instanceId: "i", host: "h", bootId: "another boot", pid: 1 };

/** A turn that runs, in a process that is not there. */
async function beginTurn(store: StateStore, sessionId: string): Promise<Grant> {
  const runner = { ...identity, runnerId: "r" };
  const holder = { ...identity, holderId: "holder" };
  await store.inbox.offer({ sessionId, inputId: "long", text: "a long one", onBusy: "wait", runner });
  const begin = { turnId: "turn-long", runnerId: "r" };
  const granted = await store.leases.acquire({ sessionId, holder, ttlMs: 60_000, begin });
  if (granted.kind !== "granted") throw new Error(`not granted: ${granted.kind}`);
  return { sessionId, holderId: "holder", fencingToken: granted.fencingToken };
}

async function withStore<T>(folder: string, work: (store: StateStore) => Promise<T>): Promise<T> {
  const store = await openSqliteStore(path.join(folder, "state.db"), { host: systemHost });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

describe("an exported session", () => {
  it("is the same after it was imported, byte for byte: compacted, named, with what waits; and it goes on", async () => {
    for (const number of [1, 2])
      expect(await run("run", `Run echo ${number}`, "--session", "s")).toMatchObject({ code: 0 });
    await withStore(home, async (store) => {
      const grant = await beginTurn(store, "s");
      await store.transcript.applyCompaction({
        grant,
        turnId: "turn-long",
        basis: { throughSeq: 4, compactionCount: 0 },
        summary: { key: "sum", body: { role: "summary", text: "what was before" } },
      });
      await store.turns.end({
        grant,
        turnId: "turn-long",
        outcome: "answered",
        release: true,
        usage: { inputTokens: 3 },
      });
      await store.sessions.setTitle("s", "a name of its own");
      await store.inbox.offer({
        sessionId: "s",
        inputId: "waits",
        text: "ünï \u2028 codé",
        onBusy: "wait",
        runner: { ...identity, runnerId: "r" },
      });
      await store.inbox.abandon("s", "r");
    });
    const text = await exported();
    const file = path.join(other, "session.jsonl");
    writeFileSync(file, text);
    expect(await elsewhere("sessions", "import", file, "--json")).toMatchObject({
      code: 0,
      stdout: '{"session":"s","imported":true}\n',
    });
    expect((await elsewhere("sessions", "export", "s")).stdout).toBe(text);
    expect(await elsewhere("sessions", "verify")).toMatchObject({ code: 0 });
    expect(await elsewhere("run", "Run echo 3", "--session", "s")).toMatchObject({ code: 0 });
    expect((await elsewhere("sessions", "show", "s")).stdout).toMatch(/what was before[^]*ünï[^]*Run echo 3/);
    expect(await elsewhere("sessions", "verify")).toMatchObject({ code: 0 });
  });

  it("comes from stdin too, and under another id", async () => {
    await run("run", "Run echo 1", "--session", "s");
    const text = await exported();
    const args = ["sessions", "import", "-", "--as", "t"];
    expect(await runInside(args, { home, stdin: text })).toMatchObject({ code: 0, stdout: "" });
    expect((await run("sessions", "export", "t")).stdout).toBe(text.replaceAll('"sessionId":"s"', '"sessionId":"t"'));
    expect(await runInside(args, { home, stdin: text })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Session t is in this store already.*turnkeeper sessions delete t/),
    });
  });

  it("with a turn that ran is settled as crashed, and nobody has it", async () => {
    await run("run", "hello", "--session", "s", "--model", "demo/echo");
    await withStore(home, async (store) => {
      const grant = await beginTurn(store, "s");
      const call = { type: "tool-call", callId: "c", name: "shell", input: {} } as const;
      const entries = [{ key: "asked", body: { role: "assistant", parts: [call] } }] as const;
      await store.transcript.append({ grant, turnId: "turn-long", entries });
    });
    expect(await runInside(["sessions", "import", "-"], { home: other, stdin: await exported() })).toMatchObject({
      code: 0,
    });
    const { stdout } = await elsewhere("sessions", "show", "s", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      inputs: [{}, { inputId: "long", end: "interrupted" }],
      turns: [{}, { turnId: "turn-long", outcome: "interrupted", reason: "crashed" }],
    });
    expect(await elsewhere("sessions", "verify", "--json")).toMatchObject({ stdout: '{"violations":[]}\n' });
    expect((await elsewhere("why", "s")).stdout).toContain("Nothing runs");
  });
});

describe("a file that is no whole export is refused, exit 2, and nothing is imported", () => {
  let lines: string[] = [];
  const refused = async (text: string | Uint8Array, message: RegExp): Promise<void> => {
    expect(await runInside(["sessions", "import", "-"], { home: other, stdin: text })).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(message),
    });
    expect(await elsewhere("sessions", "list", "--json")).toMatchObject({ stdout: '{"sessions":[]}\n' });
  };
  const withLine = (index: number, change: (line: Record<string, unknown>) => unknown): string =>
    lines
      .map((line, at) => (at === index ? JSON.stringify(change(JSON.parse(line) as Record<string, unknown>)) : line))
      .join("\n");

  beforeEach(async () => {
    await run("run", "Run echo 1", "--session", "s");
    lines = (await exported()).trimEnd().split("\n");
  });

  it("with the line and the field that are wrong", async () => {
    await refused("", /it is empty/);
    await refused("no json", /line 1: is no JSON/);
    await refused("[]", /line 1: is no object with a type/);
    await refused(lines.slice(1).join("\n"), /line 1: is not the header of an export/);
    await refused(
      withLine(0, (line) => ({ ...line, version: 2 })),
      /line 1: version: 2 of the export is not known/,
    );
    await refused(
      withLine(0, (line) => ({ ...line, format: "other" })),
      /line 1: format: /,
    );
    await refused(
      withLine(0, (line) => ({ ...line, fencingToken: -1 })),
      /line 1: fencingToken: /,
    );
    await refused(
      withLine(1, (line) => ({ ...line, state: "lost" })),
      /line 2: state: /,
    );
    await refused(
      withLine(2, (line) => ({ ...line, more: 1 })),
      /line 3: Unrecognized key: "more"/,
    );
    await refused(
      withLine(3, (line) => ({ ...line, body: { role: "user" } })),
      /line 4: body.text: /,
    );
    await refused(
      withLine(3, (line) => ({ ...line, body: { role: "user", text: "x" } })),
      /line 4: digest: /,
    );
    await refused(
      withLine(3, (line) => ({ ...line, type: "other" })),
      /line 4: type: "other" is not known/,
    );
    await refused([...lines, lines[0]].join("\n"), /line 9: stands behind the end/);
    await refused(
      Buffer.concat([Buffer.from(`${lines[0]}\n`), Buffer.from([0xff, 0x0a])]),
      /line 2: is not valid UTF-8/,
    );
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    await refused(
      [
        ...lines.slice(0, 4),
        `{"type":"entry","key":"k","body":{"role":"tool","callId":"c","name":"n","status":"ok","output":${deep}},"seq":9,"turnId":"t","digest":"d","atMs":0,"archived":false,"late":false}`,
      ].join("\n"),
      /line 5: is nested too deeply/,
    );
  });

  it("with what is missing", async () => {
    await refused(lines.slice(0, -1).join("\n"), /its last line is missing/);
    await refused(lines.filter((_, index) => index !== 5).join("\n"), /line 7: 7 lines were written before it/);
    const without = lines.filter((_, index) => index !== 3 && index !== lines.length - 1);
    const lost = [...without, JSON.stringify({ type: "end", lineCount: without.length })].join("\n");
    await refused(lost, /its user entry is missing \(INBOX-1\)/);
  });

  it("with rows that contradict each other", async () => {
    const twice = [...lines.slice(0, 4), lines[3], ...lines.slice(4, -1)];
    await refused(
      [...twice, JSON.stringify({ type: "end", lineCount: twice.length })].join("\n"),
      /does not follow seq 1/,
    );
    await refused(
      withLine(1, (line) => ({ ...line, sessionId: "t" })),
      /line 2: sessionId: is of session "t"/,
    );
    const body = { role: "user", text: "forged", inputId: "nobody" };
    await refused(
      withLine(3, (line) => ({ ...line, body, digest: digestOf(body) })),
      /its user entry is missing/,
    );
  });

  it("where it cannot be read", async () => {
    expect(await run("sessions", "import", "nowhere.jsonl")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("ENOENT"),
    });
    mkdirSync(path.join(home, "folder"));
    expect(await run("sessions", "import", "folder")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("EISDIR"),
    });
    expect(await run("sessions", "import", "x", "--as", "no id")).toMatchObject({ code: 2 });
  });
});
