import { describe, expect, it } from "vitest";
import { noAmbientTime } from "../src/rules/ambient-sources.ts";
import { noEnvironment } from "../src/rules/environment.ts";
import { storeFilesAreSqlites } from "../src/rules/store-files.ts";
import { edited, findingsOf } from "./made-up-tree.ts";

const file = "packages/turn/src/turn.ts";

describe("ambient time and chance", () => {
  it.each([
    ["Date.now()", "Date.now is ambient; use host.clock.wallMs()"],
    ["globalThis.Date.now()", "Date.now is ambient"],
    ["new Date()", "new Date() is ambient; use new Date(host.clock.wallMs())"],
    ["new Date", "new Date() is ambient"],
    ["Date()", "Date() is ambient"],
    ["performance.now()", "performance.now is ambient; use host.clock.monotonicMs()"],
    ["Math.random()", "Math.random is ambient; use host.random.unit()"],
    ["crypto.randomUUID()", "crypto.randomUUID is ambient; use host.random.id()"],
    ["process.hrtime.bigint()", "process.hrtime is ambient"],
    ["AbortSignal.timeout(1)", "AbortSignal.timeout is ambient"],
    ["setTimeout(() => {}, 1)", "setTimeout is ambient; use host.timers.after()"],
    ["globalThis.setInterval(() => {}, 1)", "setInterval is ambient; use a PeriodicScheduler"],
    ["[setImmediate]", "setImmediate is ambient; use host.timers.afterPoll() or soon()"],
    ["({ setTimeout })", "setTimeout is ambient"],
    ['await import("node:timers/promises")', "node:timers/promises is ambient"],
  ])("refuses %s", (expression, message) => {
    const findings = findingsOf(noAmbientTime, { [file]: `export const value = ${expression};` });
    expect(findings).toHaveLength(1);
    expect(findings[0]).toContain(message);
  });

  it.each([
    ['import { setTimeout } from "node:timers/promises";', "node:timers/promises is ambient; use host.timers"],
    ['import { randomUUID as id } from "node:crypto";', "randomUUID is ambient; use host.random.id()"],
    ['import { performance } from "node:perf_hooks";', "performance is ambient"],
    ['import { uptime } from "node:os";', "uptime is ambient; use host.clock.bootMs()"],
    ['import os from "node:os";', "import by name, so that this rule can see what is used"],
    ['import * as crypto from "node:crypto";', "import by name"],
  ])("refuses %s", (statement, message) => {
    const findings = findingsOf(noAmbientTime, { [file]: statement });
    expect(findings).toHaveLength(1);
    expect(findings[0]).toContain(message);
  });

  it("sees code, not words: comments, strings, members and types of these names are free", () => {
    const text = [
      "// Date.now() and setTimeout are banned here.",
      'import { createHash } from "node:crypto";',
      'import { hostname } from "node:os";',
      "interface Timers { setTimeout(ms: number): void; random: typeof setTimeout }",
      "export const at = (ms: number, timers: Timers): unknown => {",
      "  timers.setTimeout(ms);",
      '  return [new Date(ms), Date.UTC(2026, 0, 1), Math.floor(ms), "Date.now()", { setInterval: 1 }, createHash, hostname];',
      "};",
    ].join("\n");
    expect(findingsOf(noAmbientTime, { [file]: text })).toEqual([]);
  });

  it("holds for apps too, and not for kernel or tests", () => {
    expect(findingsOf(noAmbientTime, { "apps/cli/src/cli.ts": "export const cli = Date.now();" })).toHaveLength(1);
    expect(findingsOf(noAmbientTime, { "packages/turn/test/turn.test.ts": "Date.now();" })).toEqual([]);
  });
});

describe("the environment", () => {
  it("is read by apps and by no package", () => {
    expect(findingsOf(noEnvironment, { [file]: "export const key = process.env.KEY;" })).toEqual([
      `${file}:1: a package reads process.env; take the value as an option; the app reads the environment`,
    ]);
    expect(findingsOf(noEnvironment, { [file]: 'import { env } from "node:process";' })).toHaveLength(1);
    expect(
      findingsOf(noEnvironment, { [file]: "export const env = (settings: { env: string }) => settings.env;" }),
    ).toEqual([]);
    expect(findingsOf(noEnvironment, { "apps/cli/src/cli.ts": "export const key = process.env.KEY;" })).toEqual([]);
  });
});

describe("files of a store", () => {
  const adapter =
    edited("packages/ports/package.json", '"@turnkeeper/ports"', '"@turnkeeper/state-store-sqlite"')[
      "packages/ports/package.json"
    ] ?? "";
  const findings = (source: string): readonly string[] =>
    findingsOf(storeFilesAreSqlites, {
      "packages/state-store-sqlite/package.json": adapter,
      "packages/state-store-sqlite/src/file.ts": source,
    });

  it("are never opened through fs", () => {
    for (const call of [
      "readFileSync(path)",
      'openSync(path, "r")',
      "copyFileSync(path, other)",
      "createReadStream(path)",
      "writeFileSync(path, text)",
    ]) {
      const name = call.slice(0, call.indexOf("("));
      expect(findings(`import { ${name} } from "node:fs";\nexport const value = ${call};`)[0]).toContain(
        `src/file.ts:2: ${name}() may open a file of a store`,
      );
      expect(findings(`import * as fs from "node:fs";\nfs.${call};`)).toHaveLength(1);
    }
    expect(findings('import { readFile as slurp } from "node:fs/promises";\nawait slurp(path);')).toHaveLength(1);
  });

  it("may be looked at, made anew, and told from files that are no store's", () => {
    const free = [
      'import { openSync, readFileSync, statSync } from "node:fs";',
      "statSync(path);",
      'openSync(path, "wx", 0o600);',
      "openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);",
      'readFileSync("/proc/locks", "utf8");',
      'readFileSync(new URL("../migrations/0001.sql", import.meta.url), "utf8");',
      "handle.open(path);",
    ];
    expect(findings(free.join("\n"))).toEqual([]);
  });

  it("are read offline by a process of its own alone, which the package's face does not load", () => {
    const reading = 'import { openSync } from "node:fs";\nexport const value = openSync(path, "r");';
    const withFace = (face: string): readonly string[] =>
      findingsOf(storeFilesAreSqlites, {
        "packages/state-store-sqlite/package.json": adapter,
        "packages/state-store-sqlite/src/index.ts": face,
        "packages/state-store-sqlite/src/recovery/recovery.ts": 'export { value } from "./offline-file.ts";',
        "packages/state-store-sqlite/src/recovery/offline-file.ts": reading,
      });
    expect(withFace('export type { Report } from "./recovery/recovery.ts";')).toEqual([]);
    expect(withFace('export { value } from "./recovery/recovery.ts";')).toHaveLength(1);
  });
});
