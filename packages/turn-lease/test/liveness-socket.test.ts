import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import type { Timers } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { askLiveness } from "../src/liveness-socket.ts";

let folder = "";
const opened: ProcessPresence[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tk-"));
});

afterEach(async () => {
  for (const presence of opened.splice(0)) await presence.close();
  await rm(folder, { recursive: true });
});

async function open(host = systemHost, socketFolder = join(folder, "sockets")): Promise<ProcessPresence> {
  const presence = await openProcessPresence({ host }, { socketFolder });
  opened.push(presence);
  return presence;
}

function pathOf({ identity }: ProcessPresence): string {
  if (identity.socketPath === undefined) throw new Error("no socket");
  return identity.socketPath;
}

/** What a client gets that says `text` and nothing more. */
async function say(path: string, text: string): Promise<string> {
  return await new Promise((resolve) => {
    let heard = "";
    const socket = createConnection({ path });
    socket.on("connect", () => socket.write(text));
    socket.on("data", (chunk) => (heard += chunk.toString()));
    // Being cut off is an answer too.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve(heard));
  });
}

test("the socket says whether a holder or runner is active here, counted", async () => {
  const presence = await open();
  const path = pathOf(presence);
  const ask = async (): Promise<unknown> => askLiveness(systemHost.timers, path, { id: "holder-1" });
  const answer = (active: boolean) => ({
    kind: "answered",
    answer: { instanceId: presence.identity.instanceId, active, woken: false },
  });
  expect(await ask()).toEqual(answer(false));
  const first = presence.register("holder-1");
  const second = presence.register("holder-1");
  expect(await ask()).toEqual(answer(true));
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect(await ask()).toEqual(answer(true));
  second[Symbol.dispose]();
  expect(await ask()).toEqual(answer(false));
});

test("a wake-up reaches every listener of its session and no other, until it is disposed", async () => {
  const presence = await open();
  const heard: string[] = [];
  const one = presence.onWake("s", () => void heard.push("one"));
  presence.onWake("s", () => void heard.push("two"));
  presence.onWake("other", () => void heard.push("other"));
  const wake = async (): Promise<unknown> => askLiveness(systemHost.timers, pathOf(presence), { wake: "s" });
  expect(await wake()).toMatchObject({ answer: { woken: true } });
  expect(heard).toEqual(["one", "two"]);
  one[Symbol.dispose]();
  await wake();
  expect(heard).toEqual(["one", "two", "two"]);
});

test("a holder that reports its status is asked for it over the socket, and only when it is wanted", async () => {
  const presence = await open();
  const ask = async (status: boolean): Promise<unknown> =>
    askLiveness(systemHost.timers, pathOf(presence), { id: "holder-1", status });
  const answer = { instanceId: presence.identity.instanceId, active: false, woken: false };
  expect(await ask(true)).toEqual({ kind: "answered", answer });
  let askedCount = 0;
  const report = presence.reportStatus("holder-1", () => ({ doing: "a", askedCount: ++askedCount }));
  expect(await ask(false)).toEqual({ kind: "answered", answer });
  expect(await ask(true)).toEqual({ kind: "answered", answer: { ...answer, status: { doing: "a", askedCount: 1 } } });
  expect(await presence.statusOf(presence.identity, "holder-1")).toEqual({ doing: "a", askedCount: 2 });
  // A later holder of the same name is not silenced by the end of an earlier one.
  const later = presence.reportStatus("holder-1", () => ({ doing: "b" }));
  report[Symbol.dispose]();
  expect(await presence.statusOf(presence.identity, "holder-1")).toEqual({ doing: "b" });
  later[Symbol.dispose]();
  expect(await presence.statusOf(presence.identity, "holder-1")).toBe(undefined);
});

test("a status that throws, or does not fit into an answer, leaves the answer as it is without it", async () => {
  const presence = await open();
  const registration = presence.register("holder-1");
  const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const ask = async (): Promise<unknown> =>
    askLiveness(systemHost.timers, pathOf(presence), { id: "holder-1", status: true });
  const answered = {
    kind: "answered",
    answer: { instanceId: presence.identity.instanceId, active: true, woken: false },
  };
  const broken = presence.reportStatus("holder-1", () => {
    throw new Error("broken status");
  });
  expect(await ask()).toEqual(answered);
  expect(emitWarning).toHaveBeenCalledTimes(1);
  broken[Symbol.dispose]();
  const long = presence.reportStatus("holder-1", () => ({ text: "é".repeat(4_000) }));
  expect(await ask()).toEqual(answered);
  long[Symbol.dispose]();
  registration[Symbol.dispose]();
});

test("a listener that throws is reported and stops neither the others nor the process", async () => {
  const presence = await open();
  const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const heard: string[] = [];
  presence.onWake("s", () => {
    throw new Error("broken listener");
  });
  presence.onWake("s", () => void heard.push("two"));
  await askLiveness(systemHost.timers, pathOf(presence), { wake: "s" });
  expect(heard).toEqual(["two"]);
  expect(emitWarning).toHaveBeenCalledTimes(1);
});

test("folder and socket belong to this user alone", async () => {
  const sockets = join(folder, "sockets");
  mkdirSync(sockets, { mode: 0o755 });
  const presence = await open();
  expect(statSync(sockets).mode & 0o777).toBe(0o700);
  expect(statSync(pathOf(presence)).mode & 0o777).toBe(0o600);
});

test("garbage, a line without an end and silence get no answer, and the next question gets its own", async () => {
  const host = virtualHost();
  const presence = await open({ ...systemHost, timers: host.timers });
  const path = pathOf(presence);
  expect(await say(path, "not json\n")).toBe("");
  expect(await say(path, "[1,2\n")).toBe("");
  expect(await say(path, "null\n")).toBe("");
  expect(await say(path, "x".repeat(100_000))).toBe("");
  const silent = say(path, "");
  await vi.waitFor(() => expect(host.pendingTimerCount()).toBe(1));
  await host.advance(1_000);
  expect(await silent).toBe("");
  expect(await say(path, '{"id":5,"wake":{}}\n')).toContain('"active":false');
  expect(host.pendingTimerCount()).toBe(0);
});

test("an answer that is no answer proves nothing", async () => {
  for (const reply of ["", "nonsense\n", '{"active":true}\n', "y".repeat(10_000)]) {
    const path = join(folder, "liar.sock");
    const server = createServer((socket) => void socket.resume().end(reply));
    await new Promise<void>((resolve) => void server.listen(path, resolve));
    expect(await askLiveness(systemHost.timers, path, { id: "x" })).toEqual({ kind: "no-answer" });
    await new Promise((resolve) => void server.close(resolve));
  }
});

test("a timer that runs before an answer that has come takes it for no silence; the time begins with the question", async () => {
  const path = join(folder, "late.sock");
  const answer = { instanceId: "i", active: true, woken: false };
  let expire: (() => void) | undefined;
  const after: Timers["after"] = (_ms, judge) => {
    expire = judge;
    return () => {};
  };
  const server = createServer((socket) => {
    socket.once("data", () => {
      socket.end(`${JSON.stringify(answer)}\n`);
      // As after a callback that took long: what is due runs before what has come is read.
      expire?.();
    });
  });
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  const asking = askLiveness({ ...systemHost.timers, after }, path, {});
  expect(expire).toBeUndefined();
  expect(await asking).toEqual({ kind: "answered", answer });
  expect(expire).toBeDefined();
  await new Promise((resolve) => void server.close(resolve));
});

test("an answer of another instance than the one that was asked for says nothing of it", async () => {
  const presence = await open();
  const path = join(folder, "heir.sock");
  const heir = { instanceId: "heir", active: true, woken: true };
  const server = createServer((socket) => void socket.resume().end(`${JSON.stringify(heir)}\n`));
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  const target = { ...presence.identity, instanceId: "earlier", socketPath: path };
  expect(await presence.probe(target, "x")).toBe("unknown");
  expect(await presence.wake(target, "s", "x")).toBe("unknown");
  await new Promise((resolve) => void server.close(resolve));
});

test("rule 7.12: only a refused connection is told as one; any other error but absence proves nothing", async () => {
  const file = join(folder, "file");
  writeFileSync(file, "no socket");
  expect(await askLiveness(systemHost.timers, file, {})).toEqual({ kind: "refused" });
  expect(await askLiveness(systemHost.timers, join(folder, "none.sock"), {})).toEqual({ kind: "absent" });
  expect(await askLiveness(systemHost.timers, join(file, "beneath.sock"), {})).toEqual({ kind: "no-answer" });
});

test("opened twice for one folder it is one socket, removed when the last has closed; closing twice is safe", async () => {
  const first = await open();
  const second = await open();
  const path = pathOf(first);
  expect(pathOf(second)).toBe(path);
  await first.close();
  await first.close();
  expect(existsSync(path)).toBe(true);
  expect(await askLiveness(systemHost.timers, path, {})).toMatchObject({ kind: "answered" });
  await second.close();
  expect(existsSync(path)).toBe(false);
  expect(await askLiveness(systemHost.timers, path, {})).toEqual({ kind: "absent" });
});

test("closed and opened at the same time, whoever opens has a socket that answers", async () => {
  for (let round = 0; round < 20; round++) {
    const first = await open();
    const [second] = await Promise.all([open(), first.close()]);
    expect(second.socketProblem).toBeUndefined();
    expect(await askLiveness(systemHost.timers, pathOf(second), {})).toMatchObject({ kind: "answered" });
    await second.close();
  }
  expect(readdirSync(join(folder, "sockets"))).toEqual([]);
});

test("a second copy of the package in the process is the same instance with the same socket", async () => {
  const first = await open();
  vi.resetModules();
  const copy = await import("@turnkeeper/turn-lease");
  expect(copy.openProcessPresence).not.toBe(openProcessPresence);
  const second = await copy.openProcessPresence({ host: systemHost }, { socketFolder: join(folder, "sockets") });
  opened.push(second);
  expect(second.identity).toEqual(first.identity);
  using _registered = second.register("holder of the copy");
  expect(await first.probe(second.identity, "holder of the copy")).toBe("active");
});

test("where a socket cannot be made the process works without, and says why", async () => {
  const long = await open(systemHost, join(folder, "a".repeat(90)));
  expect(long.identity.socketPath).toBeUndefined();
  expect(long.socketProblem).toMatch(/has \d+ bytes; the kernel takes 107/);
  const file = await open(systemHost, join("/proc", "version"));
  expect(file.identity.socketPath).toBeUndefined();
  expect(file.socketProblem).toContain("/proc/version");
});

test("a folder that is open to others and holds other files is left as it is", async () => {
  const shared = join(folder, "shared");
  mkdirSync(shared, { mode: 0o755 });
  writeFileSync(join(shared, "notes.txt"), "mine");
  const presence = await open(systemHost, shared);
  expect(presence.socketProblem).toContain("notes.txt");
  expect(presence.identity.socketPath).toBeUndefined();
  expect(statSync(shared).mode & 0o777).toBe(0o755);
});

test("an unknown option is refused by name", async () => {
  const misspelt: object = { socketsFolder: folder };
  await expect(openProcessPresence({ host: systemHost }, misspelt)).rejects.toMatchObject({
    code: "OPTION_INVALID",
    context: { option: "socketsFolder" },
  });
});

test("a dead instance's socket is marked by the first sweep and removed by one a day later, never before", async () => {
  const sockets = join(folder, "sockets");
  mkdirSync(sockets);
  // A socket file that nobody listens on: what SIGKILL leaves. The instance had lived for months.
  const dead = join(sockets, "DEAD.sock");
  spawnSync(process.execPath, [
    "-e",
    `require("node:net").createServer().listen(${JSON.stringify(dead)}, () => process.kill(process.pid, "SIGKILL"))`,
  ]);
  const ancientS = systemHost.clock.wallMs() / 1_000 - 90 * 86_400;
  utimesSync(dead, ancientS, ancientS);
  const sweepAt = async (afterMs: number): Promise<void> => {
    const clock = { ...systemHost.clock, wallMs: () => systemHost.clock.wallMs() + afterMs };
    const presence = await open({ ...systemHost, clock });
    await vi.waitFor(() => expect(existsSync(dead) ? statSync(dead).mtimeMs : 0).toBe(0));
    await presence.close();
  };
  await sweepAt(0);
  expect(existsSync(dead)).toBe(true);
  await sweepAt(86_000_000);
  expect(existsSync(dead)).toBe(true);
  const late = await open({
    ...systemHost,
    clock: { ...systemHost.clock, wallMs: () => systemHost.clock.wallMs() + 86_500_000 },
  });
  await vi.waitFor(() => expect(existsSync(dead)).toBe(false));
  await late.close();
});

test("a sweep never touches the socket of a living instance, nor a file that is none", async () => {
  const sockets = join(folder, "sockets");
  const living = await open();
  const other = createServer();
  const otherPath = join(sockets, "OTHER.sock");
  await new Promise<void>((resolve) => void other.listen(otherPath, resolve));
  writeFileSync(join(sockets, "notes.txt"), "mine");
  utimesSync(otherPath, 0, 0);
  await living.close();
  const again = await open();
  await again.close();
  expect(existsSync(otherPath)).toBe(true);
  expect(existsSync(join(sockets, "notes.txt"))).toBe(true);
  await new Promise((resolve) => void other.close(resolve));
});
