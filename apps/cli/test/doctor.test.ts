import { spawnSync } from "node:child_process";
import { chmodSync, linkSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { closeSync, openSync, writeSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeFolder, makeHome } from "./outside/built-cli.ts";

interface Told {
  readonly ok: boolean;
  readonly checks: readonly {
    readonly name: string;
    readonly status: string;
    readonly found: string;
    readonly next?: string;
  }[];
}

let home = "";
const storePath = (): string => path.join(home, "state.db");

async function doctor(...args: readonly string[]): Promise<Told & { readonly code: number }> {
  const { code, stdout } = await runInside(["doctor", "--json", ...args], { home });
  const told = JSON.parse(stdout) as Told;
  for (const { next = "" } of told.checks) expectOneOrTheOther(next);
  return { code, ...told };
}

/** A next step is typed as it stands, or says what to do: a sentence around a command can be neither. */
function expectOneOrTheOther(next: string): void {
  const command = /\b(?:turnkeeper|mkdir|mv|cp|chmod|chown|du) /.exec(next);
  if (!command) return;
  expect({ next, index: command.index }).toEqual({ next, index: 0 });
  expect({ next, ...spawnSync("bash", ["-n", "-c", next]) }).toMatchObject({ next, status: 0 });
}

/** The finding that is wrong, which is the only one. */
async function theFault(...args: readonly string[]): Promise<Told["checks"][number] | undefined> {
  const { code, ok, checks } = await doctor(...args);
  expect({ code, ok }).toEqual({ code: 1, ok: false });
  const wrong = checks.filter(({ status }) => status === "wrong");
  expect(wrong.map(({ next }) => next)).toEqual(wrong.map(() => expect.stringMatching(/./)));
  return wrong[0];
}

beforeEach(async () => {
  home = makeHome("model: demo/echo\n");
  expect(await runInside(["run", "hello", "--session", "s"], { home })).toMatchObject({ code: 0 });
});

describe("doctor", { timeout: 60_000 }, () => {
  it("finds a store as it was left sound, and says what it looked at", async () => {
    const { code, ok, checks } = await doctor();
    expect({ code, ok }).toEqual({ code: 0, ok: true });
    const names = new Set(checks.map(({ name }) => name));
    for (const name of [
      "node",
      "home",
      "config",
      "store",
      "sqlite",
      "journal",
      "spool",
      "file system",
      "disk space",
      "liveness socket",
      "store files",
      "wal",
      "structure",
    ])
      expect(names).toContain(name);
  });

  it("finds a page that was written over, without opening the store, and leads to its recovery", async () => {
    const file = openSync(storePath(), "r+");
    writeSync(file, Buffer.alloc(4096, 0x55), 0, 4096, 2 * 4096);
    closeSync(file);
    const names = readdirSync(home);
    const fault = await theFault();
    expect(readdirSync(home)).toEqual(names);
    expect(fault).toMatchObject({
      name: "structure",
      next: `turnkeeper sessions recover --source ${storePath()} --inspect-only`,
    });
  });

  it("finds something else in the place of the spool, and what it prints moves it away", async () => {
    writeFileSync(`${storePath()}-spool`, "mine\n", { mode: 0o600 });
    const fault = await theFault();
    expect(fault).toMatchObject({ name: "spool", found: expect.stringContaining("a link or no folder") });
    expect(spawnSync("bash", ["-c", fault?.next ?? ""])).toMatchObject({ status: 0 });
    expect((await doctor()).code).toBe(0);
  });

  it("finds a first page that is gone", async () => {
    const file = openSync(storePath(), "r+");
    writeSync(file, Buffer.alloc(4096, 0x55), 0, 4096, 0);
    closeSync(file);
    expect(await theFault()).toMatchObject({ name: "structure", found: expect.stringContaining("NOTADB") });
  });

  it("a folder in the store's place is told once, and nothing is advised that would not help", async () => {
    rmSync(storePath());
    for (const suffix of ["-mark", "-reserve"]) rmSync(`${storePath()}${suffix}`, { force: true });
    mkdirSync(path.join(storePath(), "inside"), { recursive: true });
    const { checks } = await doctor();
    expect(checks.filter(({ status }) => status === "wrong")).toEqual([
      expect.objectContaining({ name: "store", found: expect.stringContaining("it is a folder") }),
    ]);
  });

  it("on a file system that is read-only advises another place, and no change of owner", async (context) => {
    const disk = path.join(home, "disk");
    mkdirSync(disk);
    const mount = (...options: readonly string[]): number | null =>
      spawnSync("mount", ["-t", "tmpfs", "-o", options.join(","), "tmpfs", disk]).status;
    if (mount("size=8m") !== 0) return context.skip("mounting a disk needs root");
    try {
      const onDisk = ["--home", disk];
      expect(await runInside(["run", "hello", "--model", "demo/echo", ...onDisk], { home })).toMatchObject({ code: 0 });
      expect(mount("remount", "ro")).toBe(0);
      const { checks } = await doctor(...onDisk);
      const wrong = checks.filter(({ name }) => ["home", "store", "liveness socket"].includes(name));
      expect(wrong.map(({ status }) => status)).toEqual(["wrong", "wrong", "wrong"]);
      for (const { found } of wrong) expect(found).toContain("read-only");
      expect(JSON.stringify(checks)).not.toMatch(/chown|write permission/);
    } finally {
      spawnSync("umount", ["-l", disk]);
    }
  });

  it("finds hard links, modes, a WAL that is too long, and one without its database", async () => {
    chmodSync(storePath(), 0o640);
    expect(await theFault()).toMatchObject({ name: "store files", next: `chmod 600 ${storePath()}` });
    linkSync(storePath(), path.join(home, "twin.db"));
    expect((await doctor()).checks).toContainEqual(
      expect.objectContaining({ name: "store files", found: expect.stringContaining("2 hard links") }),
    );
    rmSync(path.join(home, "twin.db"));
    writeFileSync(`${storePath()}-wal`, "", { mode: 0o600 });
    truncateSync(`${storePath()}-wal`, 65 * 1024 * 1024);
    expect(await theFault()).toMatchObject({ name: "wal", found: expect.stringContaining("65 MB") });
    rmSync(storePath());
    writeFileSync(`${storePath()}-wal`, "rows", { mode: 0o600 });
    expect((await doctor()).checks).toContainEqual(
      expect.objectContaining({
        name: "wal",
        status: "wrong",
        next: expect.stringContaining("turnkeeper sessions recover --source"),
      }),
    );
  });

  it("finds a folder of sockets that is none, or open to others", async () => {
    rmSync(path.join(home, "run"), { recursive: true, force: true });
    writeFileSync(path.join(home, "run"), "");
    expect(await theFault()).toMatchObject({ name: "liveness socket", found: expect.stringContaining("is no folder") });
    rmSync(path.join(home, "run"));
    mkdirSync(path.join(home, "run"), { mode: 0o755 });
    expect((await doctor()).checks).toContainEqual(
      expect.objectContaining({ name: "liveness socket", status: "note", next: expect.stringMatching(/^chmod 700/) }),
    );
  });

  it("calls no home right that is a file, lies below one, or cannot keep files", async () => {
    const file = path.join(makeFolder(), "file");
    writeFileSync(file, "");
    for (const wrong of [file, path.join(file, "below"), "/proc", "/proc/below", "/sys"])
      expect(await theFault("--home", wrong), `${wrong}`).toMatchObject({ name: "home" });
  });
});
