import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeFolder, makeHome, runCli } from "./outside/built-cli.ts";

const moduleLog = fileURLToPath(new URL("outside/module-log.mjs", import.meta.url));

const packageName = /(?:node_modules\/(?!\.pnpm)|packages\/|apps\/)((?:@[^/]+\/)?[^/]+)/;

/** The packages that a command loads: those of each module in each chunk of the bundle, and those beside it. */
async function packagesOf(args: readonly string[]): Promise<readonly string[]> {
  const log = path.join(makeFolder(), "modules");
  const result = await runCli(args, {
    home: makeFolder(),
    env: { NODE_OPTIONS: `--import ${moduleLog}`, MODULE_LOG: log },
  });
  expect(result.code).toBe(0);
  const loaded = readFileSync(log, "utf8").split("\n");
  const files = loaded.flatMap((url) => {
    if (!url.includes("/apps/cli/dist/")) return [url];
    // The bundle names each module where its code begins.
    const named = readFileSync(new URL(url), "utf8").matchAll(/^\/\/ ((?:apps|packages|node_modules)\/\S+)$/gm);
    return [...named].map(([, module = ""]) => module);
  });
  return [...new Set(files.flatMap((file) => packageName.exec(file)?.[1] ?? []))].toSorted();
}

describe("start-up is lazy", () => {
  for (const args of [["--help"], ["run", "--help"], ["sessions", "verify", "--help"], ["config", "show", "--help"]]) {
    it(`${args.join(" ")} loads neither a database, nor a model, nor a schema library`, async () => {
      expect(await packagesOf(args)).toEqual(["cli", "commander"]);
    });
  }

  it("--version loads nothing", async () => {
    expect(await packagesOf(["--version"])).toEqual(["cli"]);
  });

  it("a list of sessions loads the store and nothing of models and tools", async () => {
    const packages = await packagesOf(["sessions", "list"]);
    expect(packages).toContain("state-store");
    for (const name of ["models", "tools", "agent-core", "zod", "undici", "yaml"]) expect(packages).not.toContain(name);
  });
});

const commands = [
  [],
  ["run"],
  ["chat"],
  ["sessions"],
  ["sessions", "list"],
  ["sessions", "show"],
  ["sessions", "search"],
  ["sessions", "export"],
  ["sessions", "delete"],
  ["sessions", "verify"],
  ["why"],
  ["stop"],
  ["top"],
  ["doctor"],
  ["config"],
  ["config", "show"],
  ["config", "check"],
  ["config", "schema"],
  ["config", "path"],
  ["gateway"],
];

describe("help", () => {
  for (const command of commands) {
    it(`of ${command.join(" ") || "turnkeeper"} shows an example that the command line accepts`, async () => {
      const help = await runInside([...command, "--help"], { home: makeHome() });
      expect(help).toMatchObject({ code: 0, stderr: "" });
      const example = /Examples?:\n {2}turnkeeper (.*)/.exec(help.stdout)?.[1] ?? "";
      expect(example.startsWith(command.join(" "))).toBe(true);
      // The same words with --help behind them are parsed, and nothing runs.
      const words = example.replace(/ >.*/, "").match(/"[^"]*"|\S+/g) ?? [];
      expect(await runInside([...words, "--help"], { home: makeHome() })).toMatchObject({ code: 0 });
    });
  }

  it("is what a bare command gets, with exit 2", async () => {
    expect(await runInside([], { home: makeHome() })).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("Usage: turnkeeper"),
    });
  });
});
