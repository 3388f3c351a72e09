import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, startCli, startOnTerminal } from "./outside/built-cli.ts";
import { compatibleConfig, openAiCall, openAiStall, openAiText, serveModel } from "./outside/model-server.ts";

const heldLoading = fileURLToPath(new URL("outside/held-loading.mjs", import.meta.url));

/** Whether it has its own handlers of signals; Node catches SIGINT and SIGTERM from the beginning, SIGHUP never. */
function catchesHangUp(pid: number): boolean {
  const [, caught = "0"] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (BigInt(`0x${caught}`) & 1n) === 1n;
}

/** Grows with each turn of its event loop, at whose end it waits. */
function loopTurns(pid: number): number {
  const [, count = "0"] = /^voluntary_ctxt_switches:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(count);
}

/** It has its socket and loads nothing any more: it sleeps whenever one looks, and its loop goes round. */
async function hasComeToRest(home: string, pid: number): Promise<void> {
  const folder = path.join(home, "run");
  const hasSocket = (): boolean => existsSync(folder) && readdirSync(folder).some((name) => name.endsWith(".sock"));
  await expect.poll(hasSocket, { timeout: 20_000 }).toBe(true);
  let restingLooks = 0;
  let turnsBefore = loopTurns(pid);
  const look = (): number => {
    const isAsleep = /^State:\s*S/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    const turns = loopTurns(pid);
    restingLooks = isAsleep && turns > turnsBefore ? restingLooks + 1 : 0;
    turnsBefore = turns;
    return restingLooks;
  };
  await expect.poll(look, { timeout: 20_000, interval: 100 }).toBeGreaterThan(7);
}

describe("stopping a turn", () => {
  it("Ctrl-C once stops it softly: what came is kept, exit 130, and the session works", async () => {
    const server = await serveModel(openAiStall("half an"), openAiText("whole"));
    const home = makeHome(compatibleConfig(server));
    const run = startCli(["run", "go", "--session", "s"], { home });
    await run.sees(/half an/);
    run.child.kill("SIGINT");
    const ended = await run.ended;
    expect(ended).toMatchObject({ code: 130, signal: null, stdout: "half an\n" });
    expect(ended.stderr).toContain(`interrupted (user-stop): Stopped by Ctrl-C, pid ${run.pid}.`);
    expect(await runInside(["run", "again", "--session", "s"], { home })).toMatchObject({ code: 0, stdout: "whole\n" });
    expect(JSON.stringify(server.requests[1]?.body.messages)).toContain("half an");
  });

  it("Ctrl-C twice stops a tool that ignores the first one", async () => {
    const server = await serveModel(
      openAiCall("shell", JSON.stringify({ command: "trap '' TERM; sleep 600" })),
      openAiText("never"),
    );
    const home = makeHome(compatibleConfig(server));
    const run = startCli(["run", "go", "--session", "s", "--yes"], { home });
    await run.sees(/▸ shell/, "stderr");
    run.child.kill("SIGINT");
    await run.sees(/Stopping/, "stderr");
    run.child.kill("SIGINT");
    const pressedAt = performance.now();
    expect(await run.ended).toMatchObject({ code: 130 });
    expect(performance.now() - pressedAt).toBeLessThan(15_000);
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(JSON.parse(shown.stdout)).toMatchObject({
      inputs: [{ end: "interrupted" }],
      entries: [{ role: "user" }, { role: "assistant" }, { role: "tool", status: "interrupted" }],
    });
    expect(await runInside(["sessions", "verify", "s"], { home })).toMatchObject({ code: 0 });
  });

  it("SIGTERM ends the turn as shutdown and the process with 130", async () => {
    const server = await serveModel(openAiStall("half"));
    const home = makeHome(compatibleConfig(server));
    const run = startCli(["run", "go", "--session", "s", "--json"], { home });
    await run.sees(/half/);
    run.child.kill("SIGTERM");
    const ended = await run.ended;
    expect(eventsOf(ended.stdout).at(-1)).toMatchObject({ outcome: "interrupted", reason: "shutdown" });
    expect(ended.code).toBe(130);
  });

  // When it catches signals is read in /proc.
  it.runIf(process.platform === "linux")(
    "SIGTERM while the message is being stored leaves it to the next run, and stores it once",
    async () => {
      const server = await serveModel(openAiText("first"), openAiText("both"), openAiText("both"));
      const home = makeHome(compatibleConfig(server));
      expect(await runInside(["run", "first", "--session", "s"], { home })).toMatchObject({ code: 0 });
      const lock = new Database(path.join(home, "state.db"));
      lock.exec("BEGIN IMMEDIATE");
      const run = startCli(["run", "second", "--session", "s", "--input-id", "second", "--json"], { home });
      // What it waits for is the store.
      await hasComeToRest(home, run.pid);
      const turnsBefore = loopTurns(run.pid);
      run.child.kill("SIGTERM");
      // The signal is seen in the next turn of its loop; the message cannot be stored meanwhile.
      await expect.poll(() => loopTurns(run.pid) - turnsBefore, { timeout: 20_000 }).toBeGreaterThan(3);
      expect(run.stdout).toBe("");
      lock.exec("COMMIT");
      lock.close();
      const ended = await run.ended;
      expect(eventsOf(ended.stdout).at(-1)).toMatchObject({ outcome: "queued", reason: "shutdown" });
      expect(ended.code).toBe(130);
      expect(server.requests).toHaveLength(1);
      expect(await runInside(["run", "third", "--session", "s"], { home })).toMatchObject({ code: 0 });
      const shown = await runInside(["sessions", "show", "s", "--json"], { home });
      expect(JSON.parse(shown.stdout)).toMatchObject({
        inputs: [{ end: "answered" }, { inputId: "second", end: "answered" }, { end: "answered" }],
      });
    },
  );

  // When it catches signals is read in /proc.
  it.runIf(process.platform === "linux").each([
    ["SIGINT", "user-stop"],
    ["SIGTERM", "shutdown"],
  ] as const)(
    "%s before there is a message ends the call at once as cancelled: nothing is stored",
    async (signal, reason) => {
      const home = makeHome();
      const run = startCli(["run", "--session", "s", "--json"], { home, stdin: null });
      await expect.poll(() => catchesHangUp(run.pid), { timeout: 20_000 }).toBe(true);
      run.child.kill(signal);
      const ended = await run.ended;
      expect(eventsOf(ended.stdout)).toEqual([
        expect.objectContaining({ type: "turn.finished", sessionId: "s", outcome: "cancelled", reason, text: "" }),
      ]);
      expect(ended).toMatchObject({ code: 130, signal: null, stderr: expect.stringContaining("nothing was sent") });
      expect(existsSync(path.join(home, "state.db"))).toBe(false);
    },
  );

  it("a signal while another command is being loaded ends it as ever", async () => {
    const home = makeHome();
    const file = path.join(home, "go-on");
    const env = { NODE_OPTIONS: `--import ${heldLoading}`, HELD_LOADING: file };
    const list = startCli(["sessions", "list"], { home, env });
    await expect.poll(() => existsSync(`${file}.waits`), { timeout: 20_000 }).toBe(true);
    list.child.kill("SIGTERM");
    writeFileSync(file, "");
    expect(await list.ended).toMatchObject({ code: null, signal: "SIGTERM" });
  });

  it("Ctrl-C while it waits leaves the message in the queue; the next run takes it", async () => {
    const server = await serveModel(openAiStall("held"), openAiText("both"));
    const home = makeHome(compatibleConfig(server));
    const holder = startCli(["run", "first", "--session", "s"], { home });
    await holder.sees(/held/);
    const waiter = startCli(["run", "second", "--session", "s", "--input-id", "second", "--json"], { home });
    await waiter.sees(/turn\.waiting/);
    waiter.child.kill("SIGINT");
    const ended = await waiter.ended;
    expect(eventsOf(ended.stdout).at(-1)).toMatchObject({ outcome: "queued", reason: "user-stop" });
    expect(ended.code).toBe(130);
    holder.child.kill("SIGKILL");
    await holder.ended;
    expect(await runInside(["run", "third", "--session", "s"], { home })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("This process first runs an older message of session s."),
    });
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(JSON.parse(shown.stdout)).toMatchObject({
      inputs: [{ end: "interrupted" }, { inputId: "second", end: "answered" }, { end: "answered" }],
    });
  }, 60_000);

  it("turnkeeper stop reaches the holder in another process; why and top tell of the turn meanwhile", async () => {
    const server = await serveModel(openAiStall("half"));
    const home = makeHome(compatibleConfig(server));
    const run = startCli(["run", "go", "--session", "s", "--json"], { home });
    await run.sees(/half/);
    const why = await runInside(["why", "s"], { home });
    expect(why.stdout).toMatch(new RegExp(`holder +pid ${run.pid} on .* \\(alive\\)`));
    expect(why.stdout).toMatch(/progress +model: text, [\d.]+ m?s ago/);
    expect(why.stdout).toMatch(/ +waits for model \S+, at most [\d.]+ \S+ more/);
    expect(why.stdout).toMatch(/next +The turn goes on to its end\. Without progress it is stopped in /);
    const told = await runInside(["why", "s", "--json"], { home });
    expect(JSON.parse(told.stdout)).toMatchObject({
      progress: { last: "model: text", waits: [{ kind: "model" }], stopsInMs: expect.any(Number) },
    });
    // Stopped by its terminal it cannot be asked, and nothing is made up.
    run.child.kill("SIGSTOP");
    const silent = await runInside(["why", "s"], { home });
    run.child.kill("SIGCONT");
    expect(silent.stdout).toContain("its process does not say what it is doing");
    expect(silent.stdout).toMatch(/next +Its process does not answer: .* the lease runs out in /);
    const top = await runInside(["top", "--json"], { home });
    expect(JSON.parse(top.stdout)).toMatchObject({ session: "s", pid: run.pid, state: "alive", pendingCount: 0 });
    const askedAt = performance.now();
    const stop = await runInside(["stop", "s"], { home });
    expect(stop).toMatchObject({ code: 0, stderr: expect.stringContaining(`Asked pid ${run.pid}`) });
    const ended = await run.ended;
    expect(performance.now() - askedAt).toBeLessThan(10_000);
    const by = expect.stringMatching(/^turnkeeper stop, pid \d+$/);
    expect(eventsOf(ended.stdout).at(-1)).toMatchObject({ outcome: "interrupted", reason: "user-stop", by });
    expect(ended.code).toBe(130);
    const shown = await runInside(["sessions", "show", "s", "--json"], { home });
    expect(JSON.parse(shown.stdout)).toMatchObject({ turns: [{ outcome: "interrupted", reason: "user-stop", by }] });
    const read = await runInside(["sessions", "show", "s"], { home });
    expect(read.stdout).toMatch(/: interrupted \(user-stop, by turnkeeper stop, pid \d+\)/);
  });

  it("why says of a process that is stopped that it does not answer, whether it holds the session or waits for it", async () => {
    const server = await serveModel(openAiStall("half"), openAiText("second answer"));
    const home = makeHome(compatibleConfig(server));
    const holder = startCli(["run", "first", "--session", "s"], { home });
    await holder.sees(/half/);
    const waiter = startCli(["run", "second", "--session", "s", "--input-id", "second"], { home });
    await waiter.sees(/waiting/, "stderr");
    holder.child.kill("SIGSTOP");
    waiter.child.kill("SIGSTOP");
    expect(await runInside(["stop", "s"], { home })).toMatchObject({ code: 0 });
    const held = await runInside(["why", "s"], { home });
    expect(held.stdout).toMatch(/next +Its process does not answer: .*If it goes on, the turn ends as it was asked to/);
    expect(held.stdout).toContain(`Then pid ${waiter.pid} on `);
    expect(held.stdout).toContain("if it answers again");
    holder.child.kill("SIGCONT");
    expect(await holder.ended).toMatchObject({ code: 130 });
    const free = await runInside(["why", "s"], { home });
    expect(free.stdout).toMatch(
      new RegExp(`next +Nothing runs\\. Input second waits for pid ${waiter.pid} on .*, which does not answer`),
    );
    waiter.child.kill("SIGCONT");
    expect(await waiter.ended).toMatchObject({ code: 0, stdout: "second answer\n" });
  });

  it("stop says that nothing runs with exit 1, also where a dead process left a turn, which it settles", async () => {
    const server = await serveModel(openAiStall("half"));
    const home = makeHome(compatibleConfig(server));
    const run = startCli(["run", "go", "--session", "s"], { home });
    await run.sees(/half/);
    run.child.kill("SIGKILL");
    await run.ended;
    const stop = await runInside(["stop", "s"], { home });
    expect(stop).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("had died, and its turn is settled as crashed now"),
    });
    expect(await runInside(["stop", "s"], { home })).toMatchObject({
      code: 1,
      stderr: "turnkeeper: Nothing runs on session s.\n",
    });
  });

  it("on a terminal the key Ctrl-C stops the turn", async () => {
    const server = await serveModel(openAiStall("half"));
    const home = makeHome(compatibleConfig(server));
    const run = startOnTerminal(["run", "go", "--session", "s"], { home });
    await run.sees(/half/);
    run.child.stdin.write("\u0003");
    expect(await run.ended).toMatchObject({ code: 130, stdout: expect.stringContaining("interrupted (user-stop)") });
  });
});
