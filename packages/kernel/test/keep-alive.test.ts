import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const packageFolder = path.resolve(import.meta.dirname, "..");

/** Runs a program that has only this to do, and answers what it printed by the time it ended by itself. */
async function run(program: string): Promise<string> {
  const flags = ["--import", "tsx", "--conditions=@turnkeeper/source", "--input-type=module", "--eval"];
  const source = `import { systemHost } from "@turnkeeper/kernel"; const { timers } = systemHost; ${program}`;
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, source], {
    cwd: packageFolder,
    timeout: 20_000,
  });
  return stdout;
}

describe("a pending timer", () => {
  test("keeps the process alive by default", async () => {
    expect(await run(`timers.after(20, () => console.log("fired"));`)).toBe("fired\n");
  });

  test("lets the process end before it fires, with keepAlive false (in every link of a chain) or cancelled", async () => {
    const unref = `{ keepAlive: false }`;
    const program = `
      timers.after(3_600_000, () => console.log("fired"), ${unref});
      timers.after(2 ** 33, () => console.log("fired"), ${unref});
      timers.after(3_600_000, () => console.log("fired"))();`;
    expect(await run(program)).toBe("");
  });
});
