import path from "node:path";
import { findPostgres, startPostgres } from "@turnkeeper/postgres-server";
import type { PostgresServer } from "@turnkeeper/postgres-server";
import { systemHost } from "@turnkeeper/kernel";
import type { AcquireRequest, Grant, StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import type { InsideResult } from "./inside/command-line.ts";
import { makeHome, startCli } from "./outside/built-cli.ts";

let home = "";
let [from, to] = ["", ""];
const run = (...args: readonly string[]): Promise<InsideResult> => runInside(args, { home });
const copy = (...args: readonly string[]): Promise<InsideResult> => run("store", "copy", ...args);

beforeEach(() => {
  home = makeHome("model: demo/echo\n");
  [from, to] = [path.join(home, "from.db"), path.join(home, "the other's.db")];
});

/** Of a boot that is over: whoever asks takes it for dead. */
const gone = { instanceId: "i", host: "h", bootId: "another boot", pid: 1 };
const runner = { ...gone, runnerId: "r" };

async function withStore<T>(file: string, work: (store: StateStore) => Promise<T>): Promise<T> {
  const store = await openSqliteStore(file, { host: systemHost });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function take(
  store: StateStore,
  request: Partial<AcquireRequest> & { readonly sessionId: string },
): Promise<Grant> {
  const holder = { ...gone, holderId: systemHost.random.id() };
  const granted = await store.leases.acquire({ holder, ttlMs: 60_000, ...request });
  if (granted.kind !== "granted") throw new Error(`${request.sessionId}: ${granted.kind}`);
  return { sessionId: request.sessionId, holderId: holder.holderId, fencingToken: granted.fencingToken };
}

async function begin(store: StateStore, sessionId: string, number = 1): Promise<{ grant: Grant; turnId: string }> {
  const turnId = `turn-${number}`;
  await store.inbox.offer({
    sessionId,
    inputId: `input-${number}`,
    text: `ünï \u2028\u0000 ${number}`,
    onBusy: "wait",
    runner,
  });
  return { grant: await take(store, { sessionId, begin: { turnId, runnerId: "r" } }), turnId };
}

/** A turn with a call and its result, and a text that few columns like. */
async function converse(store: StateStore, sessionId: string, number = 1): Promise<void> {
  const { grant, turnId } = await begin(store, sessionId, number);
  const callId = `call-${number}`;
  await store.transcript.append({
    grant,
    turnId,
    entries: [
      {
        key: `${turnId}/asks`,
        body: {
          role: "assistant",
          parts: [
            { type: "reasoning", text: "hm", provider: { z: { b: 1, a: [null, 1.5e300] } } },
            { type: "tool-call", callId, name: "shell", input: { cmd: "ls", at: "\u0000" } },
          ],
          model: "demo/echo",
          usage: { outputTokens: 3, inputTokens: 5 },
        },
      },
      {
        key: `${turnId}/result`,
        body: { role: "tool", callId, name: "shell", status: "ok", output: { z: 1, a: "ü" }, receipt: { b: 1, a: 2 } },
      },
    ],
  });
  await store.turns.end({
    grant,
    turnId,
    outcome: "answered",
    release: true,
    usage: { inputTokens: 5 },
    detail: "\u0000",
  });
}

/** Long talks, a summary, names, what waits, a child, and a session that was deleted. */
async function fill(store: StateStore): Promise<void> {
  for (let number = 1; number <= 3; number++) await converse(store, "talk", number);
  const { grant, turnId } = await begin(store, "talk", 4);
  await store.transcript.applyCompaction({
    grant,
    turnId,
    basis: { throughSeq: 4, compactionCount: 0 },
    summary: { key: "sum", body: { role: "summary", text: "what was before", userTexts: ["a"] } },
  });
  await store.turns.end({ grant, turnId, outcome: "failed", reason: "MODEL", release: true });
  await store.sessions.setTitle("talk", "a name of its own");
  const parent = { sessionId: "talk", turnId: "turn-1", callId: "call-1" };
  await store.inbox.offer({ sessionId: "child", inputId: "c", text: "do it", onBusy: "wait", runner, parent });
  await store.inbox.abandon("child", "r");
  await store.inbox.offer({ sessionId: "waits", inputId: "w", text: "later", onBusy: "wait", runner });
  await store.inbox.abandon("waits", "r");
  for (let grants = 0; grants < 5; grants++) await store.leases.release(await take(store, { sessionId: "forgotten" }));
  await converse(store, "forgotten");
  await store.sessions.delete("forgotten");
}

async function exported(store: string): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await run("sessions", "list", "--json", "--store", store);
  const { sessions } = JSON.parse(stdout) as { readonly sessions: readonly { readonly sessionId: string }[] };
  const all = new Map<string, string>();
  for (const { sessionId } of sessions)
    all.set(sessionId, (await run("sessions", "export", sessionId, "--store", store)).stdout);
  return all;
}

async function isClean(store: string): Promise<void> {
  expect(await run("sessions", "verify", "--json", "--store", store)).toMatchObject({ stdout: '{"violations":[]}\n' });
}

describe("store copy", { timeout: 60_000 }, () => {
  it("makes a store of the same sessions, byte for byte, and only reads the first", async () => {
    await withStore(from, fill);
    const before = await exported(from);
    expect([...before.keys()].toSorted()).toEqual(["child", "talk", "waits"]);
    const { code, stdout, stderr } = await copy(from, to, "--json");
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: '{"copied":3,"present":0,"entries":11}\n' });
    expect(stderr).toContain("3 of 3 sessions");
    expect(await exported(to)).toEqual(before);
    expect(await exported(from)).toEqual(before);
    await isClean(to);
  });

  it("LEASE-2: no token of the copy is below one that the source granted, of a deleted session neither", async () => {
    await withStore(from, fill);
    await withStore(to, (store) => take(store, { sessionId: "talk" }).then((grant) => store.leases.release(grant)));
    expect(await copy(from, to)).toMatchObject({ code: 0 });
    const tokens = await withStore(from, (store) => store.sessions.tokens());
    expect(tokens.map(({ sessionId }) => sessionId)).toEqual(["forgotten", "talk"]);
    await withStore(to, async (store) => {
      expect(await store.sessions.tokens()).toEqual(tokens);
      expect((await take(store, { sessionId: "forgotten" })).fencingToken).toBe(7);
    });
  });

  it("is gone on with after kill -9, and has everything once", async () => {
    await withStore(from, async (store) => {
      for (let number = 0; number < 30; number++) await converse(store, `s${number}`);
    });
    const broken = startCli(["store", "copy", from, to], { home });
    await broken.sees(/3 of 30/, "stderr");
    broken.child.kill("SIGKILL");
    await broken.ended;
    await isClean(to);
    const { code, stdout } = await copy(from, to, "--json");
    const { copied, present } = JSON.parse(stdout) as { readonly copied: number; readonly present: number };
    expect({ code, sum: copied + present }).toEqual({ code: 0, sum: 30 });
    expect(present).toBeGreaterThanOrEqual(3);
    expect(await exported(to)).toEqual(await exported(from));
    await isClean(to);
    expect(JSON.parse((await copy(from, to, "--json")).stdout)).toEqual({ copied: 0, present: 30, entries: 0 });
  });

  it("refuses a store in which a turn runs or was left, and says what to type before it is repeated", async () => {
    await withStore(from, (store) => begin(store, "s"));
    const left = await copy(from, to);
    expect(left.code).toBe(75);
    expect(left.stderr).toMatch(/session s of .*from\.db: .*Next: turnkeeper sessions repair s --store /);
    expect(await run("sessions", "repair", "s", "--store", from)).toMatchObject({ code: 0 });
    const holder = startCli(["run", "hi", "--session", "t", "--model", "demo/silent", "--json", "--store", from], {
      home,
    });
    await holder.sees(/turn\.started/);
    const running = await copy(from, to);
    expect(running).toMatchObject({ code: 75, stderr: expect.stringMatching(/session t .*held by pid \d+/) });
    expect(running.stderr).toMatch(/Next: turnkeeper stop t --store /);
    expect(await run("stop", "t", "--hard", "--store", from)).toMatchObject({ code: 0 });
    await holder.ended;
    expect(await copy(from, to)).toMatchObject({ code: 0 });
    expect(await exported(to)).toEqual(await exported(from));
  });

  it("refuses what waits for an answer, and what a process that is gone was to run", async () => {
    await withStore(from, async (store) => {
      const { grant, turnId } = await begin(store, "asks");
      const body = {
        role: "assistant",
        parts: [{ type: "tool-call", callId: "c", name: "shell", input: {} }],
      } as const;
      await store.transcript.append({ grant, turnId, entries: [{ key: "k", body }] });
      expect(await store.turns.suspend({ grant, turnId, callIds: ["c"] })).toMatchObject({ kind: "suspended" });
    });
    const asking = await copy(from, to);
    expect(asking).toMatchObject({ code: 75, stderr: expect.stringMatching(/waits for approval.*stop asks --store/) });
    expect(await run("stop", "asks", "--store", from)).toMatchObject({ code: 0 });
    await withStore(from, (store) =>
      store.inbox.offer({ sessionId: "left", inputId: "w", text: "later", onBusy: "wait", runner }),
    );
    const left = await copy(from, to);
    expect(left).toMatchObject({ code: 75, stderr: expect.stringMatching(/has died.*sessions repair left --store/) });
    expect(await run("sessions", "repair", "left", "--store", from)).toMatchObject({ code: 0 });
    expect(await copy(from, to)).toMatchObject({ code: 0 });
    expect(await exported(to)).toEqual(await exported(from));
  });

  it("leaves a session alone that is another one there, names it, and goes on once it is out of the way", async () => {
    await withStore(from, fill);
    await withStore(to, (store) => converse(store, "talk"));
    const kept = (await exported(to)).get("talk");
    const refused = await copy(from, to);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/sessions delete talk --store /) });
    expect((await exported(to)).get("talk")).toBe(kept);
    expect(await run("sessions", "delete", "talk", "--yes", "--store", to)).toMatchObject({ code: 0 });
    expect(await copy(from, to)).toMatchObject({ code: 0 });
    expect(await exported(to)).toEqual(await exported(from));
  });

  it("copies nothing onto itself, and nothing that is not there", async () => {
    await withStore(from, (store) => converse(store, "s"));
    expect(await copy(from, path.join(home, ".", "from.db"))).toMatchObject({ code: 2 });
    expect(await copy(path.join(home, "none.db"), to)).toMatchObject({ code: 74 });
  });

  // Needs a server of PostgreSQL on this machine: its binaries, or PG_BIN.
  describe.skipIf(findPostgres() === undefined)("with a store on a server", () => {
    let server: PostgresServer | undefined;
    beforeAll(async () => void (server = await startPostgres()), 60_000);
    afterAll(() => server?.close());

    it("goes there and back, byte for byte", async () => {
      await withStore(from, fill);
      const before = await exported(from);
      const url = `${server?.url}?schema=copied`;
      expect(await copy(from, url)).toMatchObject({ code: 0 });
      expect(await exported(url)).toEqual(before);
      await isClean(url);
      expect(await copy(url, to)).toMatchObject({ code: 0 });
      expect(await exported(to)).toEqual(before);
      await isClean(to);
      const tokens = await withStore(from, (store) => store.sessions.tokens());
      expect(await withStore(to, (store) => store.sessions.tokens())).toEqual(tokens);
    });
  });
});
