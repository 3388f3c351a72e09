import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readlinkSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemHost } from "@turnkeeper/kernel";
import type { ProcessIdentity } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { afterEach, beforeEach, expect, test } from "vitest";

const isLinux = process.platform === "linux";

let folder = "";
let presence: ProcessPresence;
const children: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tk-"));
  presence = await openProcessPresence({ host: systemHost }, { socketFolder: folder });
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await presence.close();
  await rm(folder, { recursive: true });
});

interface Started {
  readonly child: ChildProcess;
  readonly identity: ProcessIdentity;
}

/** Starts a process with a presence in which `held` is active. */
async function start(env: Record<string, string> = {}, command: readonly string[] = []): Promise<Started> {
  const script = fileURLToPath(new URL("processes/present.ts", import.meta.url));
  const node = [process.execPath, "--import", "tsx", "--conditions=@turnkeeper/source", script, folder];
  const [file = "", ...args] = [...command, ...node];
  const child = spawn(file, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const [line] = (await once(child.stdout ?? child, "data")) as [Buffer];
  const identity = JSON.parse(line.toString()) as ProcessIdentity;
  return { child, identity };
}

async function kill({ child }: Started, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  const exit = once(child, "exit");
  child.kill(signal);
  await exit;
}

/** As `identity`, but reachable by nothing but its pid. */
function withoutSocket({ socketPath: _socketPath, ...identity }: ProcessIdentity): ProcessIdentity {
  return identity;
}

test("this process knows its own holders without a socket", async () => {
  const own = await openProcessPresence({ host: systemHost });
  using _registered = own.register("mine");
  expect(await own.probe(own.identity, "mine")).toBe("active");
  expect(await own.probe(own.identity, "leaked")).toBe("unknown-here");
  expect(await own.wake(own.identity, "nobody listens")).toBe("unknown-here");
  await own.close();
});

test("running: active; another id: unknown here; stopped: unknown; killed: dead", async () => {
  const other = await start();
  expect(await presence.probe(other.identity, "held")).toBe("active");
  expect(await presence.probe(other.identity, "leaked")).toBe("unknown-here");
  other.child.kill("SIGSTOP");
  expect(await presence.probe(other.identity, "held")).toBe("unknown");
  other.child.kill("SIGCONT");
  expect(await presence.probe(other.identity, "held")).toBe("active");
  await kill(other);
  expect(await presence.probe(other.identity, "held")).toBe("dead");
  expect(await presence.wake(other.identity, "s")).toBe("dead");
});

test("a process that closed its presence and lives is unknown, not dead: it may still hold something", async () => {
  const other = await start();
  rmSync(other.identity.socketPath ?? "");
  expect(await presence.probe(other.identity, "held")).toBe("unknown");
  await kill(other);
  // The socket is gone, but the pid can be told: second best.
  expect(await presence.probe(other.identity, "held")).toBe(isLinux ? "dead" : "unknown");
});

test("a socket is found beside ours when the folder is mounted elsewhere", async () => {
  const other = await start();
  const moved = {
    ...other.identity,
    socketPath: join("/somewhere/else", other.identity.socketPath?.split("/").at(-1) ?? ""),
  };
  expect(await presence.probe(moved, "held")).toBe("active");
  await kill(other);
});

test("without a socket pid and start time tell: a reused pid is dead, a living one unknown, a gone one dead", async ({
  skip,
}) => {
  skip(!isLinux, "needs /proc");
  const other = await start({ TITLE: "evil) S (name" });
  const known = withoutSocket(other.identity);
  expect(readFileSync(`/proc/${known.pid}/stat`, "utf8")).toContain("evil) S");
  expect(await presence.probe(known, "held")).toBe("unknown");
  // The pid came round again: another start time.
  expect(await presence.probe({ ...known, pidStart: String(Number(known.pidStart) - 1) }, "held")).toBe("dead");
  // Where the start time was not known only a pid that is gone proves anything.
  const { pidStart: _pidStart, ...bare } = known;
  expect(await presence.probe(bare, "held")).toBe("unknown");
  const exit = once(other.child, "exit");
  other.child.kill("SIGKILL");
  await exit;
  expect(await presence.probe(known, "held")).toBe("dead");
  expect(await presence.probe(bare, "held")).toBe("dead");
});

test("a zombie is dead: its pid and start time are still there, but nothing of it runs", async ({ skip }) => {
  skip(!isLinux, "needs /proc");
  // The shell becomes a sleep, which never collects the child it was given.
  const parent = await start({}, ["sh", "-c", '"$@" & exec sleep 60', "sh"]);
  const known = withoutSocket(parent.identity);
  expect(await presence.probe(known, "held")).toBe("unknown");
  process.kill(known.pid, "SIGKILL");
  await expect.poll(() => readFileSync(`/proc/${known.pid}/stat`, "utf8")).toMatch(/\) Z /);
  expect(await presence.probe(known, "held")).toBe("dead");
  expect(await presence.probe(parent.identity, "held")).toBe("dead");
});

test("a pid of another namespace, or none at all, proves nothing", async ({ skip }) => {
  skip(!isLinux, "needs /proc");
  const gone = { ...withoutSocket(presence.identity), instanceId: "gone", pid: 2 ** 22 + 1 };
  expect(await presence.probe(gone, "held")).toBe("dead");
  expect(await presence.probe({ ...gone, pidNamespace: "pid:[1]" }, "held")).toBe("unknown");
  const { pidNamespace: _pidNamespace, ...without } = gone;
  expect(await presence.probe(without, "held")).toBe("unknown");
  for (const pid of [0, -1, 1.5, Number.NaN]) expect(await presence.probe({ ...gone, pid }, "held")).toBe("unknown");
});

test("another boot is dead beside a store on a local file system, and unknown where that is not known", async ({
  skip,
}) => {
  skip(!isLinux, "needs /proc");
  const other = { ...presence.identity, instanceId: "earlier", bootId: "earlier" };
  expect(await presence.probe(other, "held")).toBe("dead");
  expect(await presence.probe({ ...other, bootId: "" }, "held")).toBe("unknown");
  const nowhere = await openProcessPresence({ host: systemHost });
  expect(await nowhere.probe(other, "held")).toBe("unknown");
  await nowhere.close();
  const bootless = await openProcessPresence(
    { host: { ...systemHost, clock: { ...systemHost.clock, bootId: "" } } },
    { socketFolder: folder },
  );
  expect(await bootless.probe({ ...other, bootId: "" }, "held")).toBe("unknown");
  await bootless.close();
});

test("a refused socket on a file system that other kernels may share proves nothing", async ({ skip }) => {
  skip(!isLinux, "needs /proc");
  const foreign = {
    ...withoutSocket(presence.identity),
    instanceId: "elsewhere",
    pidNamespace: "pid:[1]",
    // Whatever is there and is no socket refuses.
    socketPath: "/proc/version",
  };
  expect(await presence.probe(foreign, "held")).toBe("unknown");
});

/** Whether this test may make a pid namespace. */
function canUnshare(): boolean {
  if (!isLinux || process.getuid?.() !== 0) return false;
  try {
    return readlinkSync("/proc/self") === String(process.pid);
  } catch {
    return false;
  }
}

test("in another pid namespace the socket still tells alive from dead, and the pid does not", async ({ skip }) => {
  skip(!canUnshare(), "needs the right to make a pid namespace");
  const other = await start({}, ["unshare", "--pid", "--fork", "--kill-child"]);
  expect(other.identity.pid).toBe(1);
  expect(other.identity.pidNamespace).not.toBe(presence.identity.pidNamespace);
  expect(await presence.probe(other.identity, "held")).toBe("active");
  expect(await presence.probe(withoutSocket(other.identity), "held")).toBe("unknown");
  await kill(other);
  await expect.poll(() => presence.probe(other.identity, "held")).toBe("dead");
  expect(await presence.probe(withoutSocket(other.identity), "held")).toBe("unknown");
});

test("a process that sees the /proc of another namespace judges nobody by pid", async ({ skip }) => {
  skip(!canUnshare(), "needs the right to make a pid namespace");
  // In the new namespace /proc/1 is still the host's init: judged by it, the process with pid 1 would seem reused.
  const other = await start({ PROBE: "self" }, ["unshare", "--pid", "--fork", "--kill-child"]);
  expect(other.identity.pid).toBe(1);
  expect(other.identity).toMatchObject({ verdict: "unknown" });
  await kill(other);
});
