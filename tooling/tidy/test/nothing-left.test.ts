import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { baseline, leftovers } from "@turnkeeper/vitest-config/leftovers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));
// Below a package, so that its imports resolve as that package's tests do.
const scratch = path.join(root, "packages/turn-lease/.tstest");

const tests = `
import { virtualHost } from "@turnkeeper/kernel/testing";
import { afterEach, expect, it } from "vitest";

let close = () => {};
afterEach(() => close());

it("leaves nothing", () => {
  const host = virtualHost();
  host.timers.after(1000, () => {})();
  const timer = setInterval(() => {}, 1000);
  close = () => clearInterval(timer);
  expect(host.pendingTimerCount()).toBe(0);
});
it("leaves a virtual timer", () => {
  virtualHost().timers.after(1000, () => {});
  close = () => {};
});
it("leaves a real timer", () => void setInterval(() => {}, 1000));
it("leaves a listener", () => void process.on("SIGUSR2", () => {}));
it("leaves a process", async () => {
  const { spawn } = await import("node:child_process");
  // It ends with this process, by the end of its input.
  spawn("cat", { stdio: ["pipe", "ignore", "ignore"] });
});
`;

describe("the set-up that looks for what a test leaves", () => {
  let folder = "";
  let report: Map<string, string> = new Map();
  beforeAll(() => {
    mkdirSync(scratch, { recursive: true });
    folder = mkdtempSync(path.join(scratch, "nothing-left-"));
    mkdirSync(path.join(folder, "test"));
    writeFileSync(path.join(folder, "test/leaving.test.ts"), tests);
    writeFileSync(
      path.join(folder, "vitest.config.ts"),
      'import { packageConfig } from "@turnkeeper/vitest-config";\n\nexport default packageConfig("turn-lease");\n',
    );
    const vitest = path.join(path.dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
    const args = [vitest, "run", "--root", folder, "--reporter=json"];
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8", timeout: 100_000 });
    const { testResults } = JSON.parse(stdout.slice(stdout.indexOf("{"))) as {
      testResults: { assertionResults: { title: string; failureMessages: string[] }[] }[];
    };
    const results = testResults.flatMap(({ assertionResults }) => assertionResults);
    report = new Map(results.map(({ title, failureMessages }) => [title, failureMessages.join("\n")]));
  }, 120_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("fails the test that left it, and no other", () => {
    expect(report.get("leaves nothing")).toBe("");
    expect(report.get("leaves a virtual timer")).toContain("1 armed timer of a virtual host");
    expect(report.get("leaves a real timer")).toContain("left behind: 1 armed timer.");
    expect(report.get("leaves a listener")).toContain("1 listener of process event SIGUSR2");
    expect(report.get("leaves a process")).toContain("1 open ProcessWrap");
  });
});

it("what closes in its time is not left over", async () => {
  const before = baseline();
  const timer = setTimeout(() => {}, 100);
  expect(timer.hasRef()).toBe(true);
  expect(await leftovers(before)).toEqual([]);
});
