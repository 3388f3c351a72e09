/** A disk that is full before the store is opened: what is said is true, and no command shows its own entrails. */
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome, runCli } from "./outside/built-cli.ts";

it("a store on a full disk is refused with what to do; doctor says so too; with space again all is there", async (context) => {
  const home = makeHome("model: demo/echo\n");
  const disk = path.join(home, "disk");
  mkdirSync(disk);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]);
  if (mounted.status !== 0) return context.skip("mounting a small disk needs root");
  try {
    const store = ["--store", path.join(disk, "state.db")];
    expect(await runCli(["run", "hello", "--session", "s", ...store], { home })).toMatchObject({ code: 0 });
    spawnSync("dd", ["if=/dev/zero", `of=${path.join(disk, "filler")}`, "bs=4096"]);
    for (const command of [["list"], ["show", "s"], ["verify"]]) {
      const { code, stdout, stderr } = await runInside(["sessions", ...command, ...store], { home });
      expect({ command, code, stdout }).toEqual({ command, code: 74, stdout: "" });
      expect(stderr).toMatch(
        /^turnkeeper: Could not open [^\n]*: the disk is full \(\w+\)\. Free some space and repeat\.\nnext: /,
      );
    }
    const doctor = await runInside(["doctor", ...store], { home });
    expect(doctor).toMatchObject({ code: 1, stdout: expect.stringMatching(/^wrong store: .*the disk is full/m) });
    expect(doctor.stdout).toMatch(/^note {2}structure: Could not look .*: the disk is full \(\w+\)\. /m);
    expect(doctor.stdout).not.toMatch(/node:internal|file:\/\/|\bat \S+:\d+:\d+/);
    rmSync(path.join(disk, "filler"));
    expect(await runInside(["sessions", "show", "s", ...store], { home })).toMatchObject({ code: 0 });
  } finally {
    spawnSync("umount", ["-l", disk]);
  }
}, 120_000);
