import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Where the kernel keeps files in memory: kill -9 loses nothing there either. */
const inMemory = "/dev/shm";
const systemFolder = "/usr/lib/postgresql";
const startMs = 60_000;

function hasServer(folder) {
  return ["initdb", "postgres"].every((name) => existsSync(path.join(folder, name)));
}

export function findPostgres() {
  const versions = existsSync(systemFolder) ? readdirSync(systemFolder) : [];
  const newestFirst = versions.toSorted((left, right) => Number(right) - Number(left));
  const folders = [
    ...(process.env.PG_BIN ? [process.env.PG_BIN] : []),
    ...newestFirst.map((version) => path.join(systemFolder, version, "bin")),
    ...(process.env.PATH ?? "").split(path.delimiter),
  ];
  return folders.find((folder) => folder !== "" && hasServer(folder));
}

/** The server refuses to run as root: then it is run as the user that its package made. */
function runAs() {
  if (process.getuid?.() !== 0) return {};
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync("/etc/passwd", "utf8")) ?? [];
  if (uid === undefined) throw new Error("PostgreSQL does not run as root, and there is no user postgres.");
  return { uid: Number(uid), gid: Number(gid) };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** What a client says first: its length, version 3 of the protocol, who it is and which database it wants. */
const startUp = Buffer.concat([
  Buffer.from([0, 0, 0, 41, 0, 3, 0, 0]),
  Buffer.from("user\0postgres\0database\0postgres\0\0", "latin1"),
]);

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const tell = (isUp) => {
      socket.destroy();
      resolve(isUp);
    };
    socket.once("connect", () => socket.write(startUp));
    // A server that takes connections answers with how to authenticate (R); one that still recovers, with an error (E).
    socket.once("data", (bytes) => tell(bytes.toString("latin1", 0, 1) === "R"));
    socket.once("error", () => tell(false));
    socket.once("close", () => tell(false));
  });
}

/** The processes below this one. Each backend is a session of its own, so no process group has them all. */
function childrenOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function endNow(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

class Server {
  #settings;
  #bin;
  #folder;
  #user;
  #arguments;
  #child;
  #stderr = "";
  #isClosed = false;
  #watchers = [];

  constructor(bin, folder, user, port, settings) {
    this.#bin = bin;
    this.#folder = folder;
    this.#user = user;
    this.#settings = settings;
    this.port = port;
    this.url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    const all = {
      listen_addresses: "127.0.0.1",
      port,
      unix_socket_directories: folder,
      dynamic_shared_memory_type: "mmap",
      ...settings,
    };
    this.#arguments = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  }

  async startStandby() {
    const folder = serverFolder(path.dirname(this.#folder), this.#user);
    const from = `host=127.0.0.1 port=${this.port} user=postgres`;
    execFileSync(
      path.join(this.#bin, "pg_basebackup"),
      ["-d", from, "-D", path.join(folder, "data"), "-R", "-X", "stream", "-c", "fast", "--no-sync"],
      { stdio: "pipe", cwd: folder, ...this.#user },
    );
    return await started(new Server(this.#bin, folder, this.#user, await freePort(), this.#settings), folder);
  }

  async start() {
    const data = path.join(this.#folder, "data");
    const child = spawn(path.join(this.#bin, "postgres"), ["-D", data, ...this.#arguments], {
      stdio: ["ignore", "ignore", "pipe"],
      ...this.#user,
    });
    this.#child = child;
    this.#watch(child.pid);
    child.stderr.on("data", (chunk) => void (this.#stderr = `${this.#stderr}${chunk}`.slice(-10_000)));
    const ended = new Promise((resolve) => child.once("close", resolve));
    const untilMs = Date.now() + startMs;
    while (!(await answers(this.port))) {
      const isOver = child.exitCode !== null || child.signalCode !== null || Date.now() > untilMs;
      if (isOver) throw new Error(`PostgreSQL did not start: ${this.#stderr}`);
      await Promise.race([sleep(25), ended]);
    }
  }

  /** A run that is broken off closes nothing: its end of this pipe does, and then the server goes with it. */
  #watch(pid) {
    const script = 'cat > /dev/null; kill -INT "$1" 2> /dev/null && sleep 1 && rm -rf "$2"';
    const watcher = spawn("sh", ["-c", script, "sh", String(pid), this.#folder], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    watcher.unref();
    watcher.stdin.unref?.();
    this.#watchers.push(watcher);
  }

  #unwatch() {
    for (const watcher of this.#watchers.splice(0)) watcher.kill("SIGKILL");
  }

  async kill() {
    this.#unwatch();
    const { pid } = this.#child;
    const own = childrenOf(pid);
    const ended = this.#ended();
    for (const one of [pid, ...own]) endNow(one);
    await ended;
  }

  async stop() {
    this.#unwatch();
    const ended = this.#ended();
    this.#child.kill("SIGINT");
    await ended;
  }

  #ended() {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => child.once("close", resolve));
  }

  async close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Writes a file that the server alone may read, as it demands of keys; answers its path. */
function fileOf(folder, user, name, text) {
  const file = path.join(folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  if (user.uid !== undefined) chownSync(file, user.uid, user.gid);
  return file;
}

function serverFolder(parent, user) {
  const folder = mkdtempSync(path.join(parent, "turnkeeper-pg-"));
  chmodSync(folder, 0o755);
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  return folder;
}

export async function startPostgres({ fsync = false, tls, admission, settings = {} } = {}) {
  const bin = findPostgres();
  if (bin === undefined) throw new Error("There are no binaries of PostgreSQL: install them, or set PG_BIN.");
  const user = runAs();
  const folder = serverFolder(existsSync(inMemory) && !fsync ? inMemory : tmpdir(), user);
  const data = path.join(folder, "data");
  execFileSync(
    path.join(bin, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    { stdio: "pipe", cwd: folder, ...user },
  );
  const quick = fsync ? {} : { fsync: "off", full_page_writes: "off" };
  const own = { ...quick, shared_buffers: "32MB" };
  if (tls) {
    own.ssl = "on";
    own.ssl_cert_file = fileOf(folder, user, "server.crt", tls.certificate);
    own.ssl_key_file = fileOf(folder, user, "server.key", tls.key);
  }
  if (admission) own.hba_file = fileOf(folder, user, "admission.conf", admission);
  return await started(new Server(bin, folder, user, await freePort(), { ...own, ...settings }), folder);
}

async function started(server, folder) {
  try {
    await server.start();
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  return server;
}
