/** A disk that is full before the store is opened: what is said is true, and no command shows its own entrails. */
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome, runCli } from "./outside/built-cli.ts";

it("a store on a full disk can be looked at, refuses a turn with what to do, and goes on with space again", async (context) => {
  const home = makeHome("model: demo/echo\n");
  const disk = path.join(home, "disk");
  mkdirSync(disk);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]);
  if (mounted.status !== 0) return context.skip("mounting a small disk needs root");
  try {
    const store = ["--store", path.join(disk, "state.db")];
    expect(await runCli(["run", "hello", "--session", "s", ...store], { home })).toMatchObject({ code: 0 });
    spawnSync("dd", ["if=/dev/zero", `of=${path.join(disk, "filler")}`, "bs=4096"]);
    const reserve = statSync(path.join(disk, "state.db-reserve")).size;
    for (const command of [["list"], ["show", "s"], ["verify"], ["search", "hello"], ["export", "s"]]) {
      const { code, stderr } = await runInside(["sessions", ...command, ...store], { home });
      expect({ command, code, stderr }).toMatchObject({
        command,
        code: 0,
        stderr: expect.not.stringContaining("full"),
      });
    }
    const refused = await runInside(["run", "again", "--session", "s", ...store], { home });
    expect(refused).toMatchObject({ code: 74, stderr: expect.stringMatching(/the disk is full \(\w+\)[^]*\nnext: /) });
    const doctor = await runInside(["doctor", ...store], { home });
    expect(doctor).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^note {2}store: There is no room for the/m),
    });
    expect(doctor.stdout).toMatch(/^note {2}structure: Could not look .*: the disk is full \(\w+\)\. /m);
    expect(doctor.stdout).not.toMatch(/node:internal|file:\/\/|\bat \S+:\d+:\d+/);
    expect(statSync(path.join(disk, "state.db-reserve")).size).toBe(reserve);
    rmSync(path.join(disk, "filler"));
    expect(await runInside(["sessions", "show", "s", ...store], { home })).toMatchObject({ code: 0 });
  } finally {
    spawnSync("umount", ["-l", disk]);
  }
}, 120_000);
