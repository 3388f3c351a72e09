import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, runCli, runShell, startCli } from "./outside/built-cli.ts";
import { compatibleConfig, makeGate, openAiGatedText, openAiText, serveModel } from "./outside/model-server.ts";

const entriesOf = (
  json: string,
): readonly { readonly role: string; readonly text?: string; readonly late?: boolean }[] =>
  (JSON.parse(json) as { readonly entries: readonly { readonly role: string }[] }).entries;

it(
  "a store that is moved away under a turn ends it with its code and exit 74; back in its place it has all that was said",
  { timeout: 120_000 },
  async () => {
    const gate = makeGate();
    const server = await serveModel(openAiGatedText(gate, "one ", "two"), openAiText("fine"));
    const home = makeHome(compatibleConfig(server));
    const run = startCli(["run", "hello", "--session", "s", "--json"], { home });
    await run.sees(/one/);
    renameSync(path.join(home, "state.db"), path.join(home, "moved.db"));
    gate.open();
    const ended = await run.ended;
    expect(eventsOf(ended.stdout).at(-1)).toMatchObject({
      outcome: "failed",
      reason: "STORE_DELETED",
      text: "one two",
    });
    const spool = path.join(home, "state.db-spool", "s.jsonl");
    expect(ended.code).toBe(74);
    expect(ended.stderr).toMatch(
      /^turnkeeper: failed \(STORE_DELETED\): [^\n]*\nnext: turnkeeper doctor --store \S+\n$/,
    );
    expect(ended.stderr).toContain(`is kept in ${spool}, and comes back by itself with the next turn on session s`);
    expect(statSync(spool).mode & 0o777).toBe(0o600);
    renameSync(path.join(home, "moved.db"), path.join(home, "state.db"));

    const waiting = `1 step of session s that the store refused: in ${spool}, until the next turn`;
    expect((await runInside(["doctor"], { home })).stdout).toContain(waiting);
    expect((await runInside(["sessions", "show", "s"], { home })).stdout).toContain(waiting);
    expect(await runInside(["sessions", "verify"], { home })).toMatchObject({
      stderr: expect.stringContaining(waiting),
    });

    expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({ code: 0, stdout: "fine\n" });
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(entriesOf(shown.stdout).map(({ role, text }) => `${role}: ${text}`)).toEqual([
      "user: hello",
      "assistant: one two",
      "user: again",
      "assistant: fine",
    ]);
    expect(existsSync(path.dirname(spool))).toBe(false);
    expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
    expect(JSON.stringify(server.requests.at(-1)?.body.messages)).toContain("one two");
  },
);

it("what comes after its turn was settled is shown as late, and the model is not told of it", async () => {
  const server = await serveModel(openAiText("fine"));
  const home = makeHome(compatibleConfig(server));
  expect(await runInside(["run", "hello", "--session", "s"], { home })).toMatchObject({ code: 0 });
  const store = await openSqliteStore(path.join(home, "state.db"), { host: systemHost });
  const [turn] = (await store.sessions.records("s"))?.turns ?? [];
  if (!turn) throw new Error("The session has no turn.");
  const grant = { sessionId: "s", holderId: turn.holder.holderId, fencingToken: turn.fencingToken };
  const body = { role: "assistant", parts: [{ type: "text", text: "too late" }] } as const;
  await store.spool.keep({ grant, turnId: turn.turnId, entries: [{ key: "late", body }] });
  await store.close();
  expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({ code: 0 });
  expect((await runInside(["sessions", "show", "s"], { home })).stdout).toMatch(/assistant \(late\)\ntoo late\n/);
  expect(JSON.stringify(server.requests.at(-1)?.body.messages)).not.toContain("too late");
  expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
});

it("a disk that is full under a turn costs nothing of its answer", { timeout: 120_000 }, async (context) => {
  const server = await serveModel(async (response, request) => {
    spawnSync("dd", ["if=/dev/zero", `of=${path.join(disk, "filler")}`, "bs=4096"]);
    await openAiText("the ", "answer")(response, request);
  }, openAiText("fine"));
  const home = makeHome();
  const disk = path.join(home, "disk");
  mkdirSync(disk);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]);
  if (mounted.status !== 0) return context.skip("mounting a small disk needs root");
  try {
    writeFileSync(
      path.join(home, "config.yaml"),
      `${compatibleConfig(server)}store:\n  url: ${path.join(disk, "state.db")}\n`,
    );
    const first = await runCli(["run", "hello", "--session", "s"], { home });
    rmSync(path.join(disk, "filler"));
    expect([0, 74]).toContain(first.code);
    expect(await runCli(["run", "again", "--session", "s"], { home })).toMatchObject({ code: 0, stdout: "fine\n" });
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    const texts = entriesOf(shown.stdout).map(({ role, text }) => `${role}: ${text}`);
    expect(texts).toEqual(["user: hello", "assistant: the answer", "user: again", "assistant: fine"]);
    expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
  } finally {
    spawnSync("umount", ["-l", disk]);
  }
});

it("a working folder that was deleted is told on one line, and only where it is needed", async () => {
  const home = makeHome("model: demo/echo\n");
  const gone = 'mkdir "$TURNKEEPER_HOME/gone" && cd "$TURNKEEPER_HOME/gone" && rmdir "$TURNKEEPER_HOME/gone" && ';
  expect(await runShell(`${gone} $CLI run hello`, { home })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("The current folder does not exist any more"),
  });
  expect(await runShell(`${gone} $CLI sessions list --json`, { home })).toMatchObject({ code: 0 });
});
