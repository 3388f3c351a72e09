import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installAlone, runInside, writeExamples } from "../src/consumer.ts";
import type { Consumer } from "../src/consumer.ts";
import { checkContents, checkTypes, lintTarball } from "../src/shape.ts";
import { packAll, publishedProjects } from "../src/tarballs.ts";
import type { Tarball } from "../src/tarballs.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const projects = publishedProjects(root);
const minuteMs = 60_000;

let folder = "";
let tarballs: readonly Tarball[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "turnkeeper-pack-check-"));
  tarballs = await packAll(root, projects, folder);
}, 3 * minuteMs);

afterAll(() => rmSync(folder, { recursive: true, force: true }), minuteMs);

function tarballOf(name: string): Tarball {
  const tarball = tarballs.find((one) => one.name === name);
  if (!tarball) throw new Error(`${name} was not packed.`);
  return tarball;
}

const names = projects.map(({ manifest }) => manifest.name ?? "");
const libraries = projects
  .filter(({ manifest }) => manifest.exports?.["."] !== undefined)
  .map(({ manifest }) => manifest.name ?? "");
const commands = projects
  .filter(({ manifest }) => manifest["bin"] !== undefined)
  .map(({ manifest }) => manifest.name ?? "");

/** What is found by name at run time, migrations and the modules of processes and threads, is in the tarball as well. */
async function usesItsFiles(consumer: Consumer, name: string): Promise<void> {
  const command = path.join(consumer.folder, "node_modules", ".bin", name);
  for (const words of [
    ["run", "hello", "--session", "first", "--model", "demo/echo"],
    ["sessions", "verify"],
    ["sessions", "search", "hello"],
    ["sessions", "recover", "--inspect-only"],
  ]) {
    const { code, stderr } = await runInside(consumer, [command, ...words]);
    expect({ words, code, said: code === 0 ? "" : stderr }).toEqual({ words, code: 0, said: "" });
  }
  await commandServesConsole(consumer, command);
}

/** Asks a gateway for its console and for the script that the page names. */
const asksForConsole = `
  const page = await (await fetch(url)).text();
  const [, script = "none"] = /src="[.]\\/([^"]+)"/.exec(page) ?? [];
  const answer = await fetch(new URL(script, url + "/"));
  console.log(answer.status, answer.headers.get("content-type"));
`;
const consoleAnswers = { code: 0, stdout: "200 text/javascript; charset=utf-8\n", stderr: "" };

/** The page is found from the package that was installed. */
async function servesConsole(consumer: Consumer): Promise<void> {
  const program = `
    import { createAgent } from "@turnkeeper/agent-core";
    import { scriptedModel } from "@turnkeeper/agent-core/testing";
    import { startGateway } from "@turnkeeper/gateway";
    import { systemHost } from "@turnkeeper/kernel";
    import { createMemoryStore } from "@turnkeeper/state-store";
    const store = createMemoryStore({ host: systemHost });
    const agent = await createAgent({ store, model: scriptedModel([]) });
    const gateway = await startGateway({ agent, store }, { port: 0 });
    const { url } = gateway;
    ${asksForConsole}
    await gateway.close();
  `;
  expect(await runInside(consumer, ["--input-type=module", "--eval", program])).toEqual(consoleAnswers);
}

/** And from the bundle, which has a copy of it. */
async function commandServesConsole(consumer: Consumer, command: string): Promise<void> {
  const args = [
    command,
    "gateway",
    "--port",
    "0",
    "--model",
    "demo/echo",
    "--home",
    path.join(consumer.folder, "home"),
  ];
  const program = `
    import { spawn } from "node:child_process";
    import { once } from "node:events";
    const child = spawn(process.execPath, ${JSON.stringify(args)}, { stdio: ["ignore", "pipe", "ignore"] });
    let said = "";
    child.stdout.on("data", (chunk) => (said += chunk));
    while (!said.includes("\\n")) await once(child.stdout, "data");
    const [, url] = /Listening on (\\S+)/.exec(said);
    ${asksForConsole}
    child.kill();
    await once(child, "exit");
  `;
  expect(await runInside(consumer, ["--input-type=module", "--eval", program])).toEqual(consoleAnswers);
}

describe.concurrent("a packed project", () => {
  it.each(names)("%s passes publint", { timeout: minuteMs }, async (name) => {
    expect(await lintTarball(tarballOf(name))).toEqual([]);
  });

  // A command has no types to resolve.
  it.each(libraries)("%s has types that resolve for ESM users", { timeout: 2 * minuteMs }, async (name) => {
    expect(await checkTypes(tarballOf(name))).toEqual([]);
  });

  it.each(libraries)(
    "%s installs alone into an empty folder, loads, and runs its README's example",
    { timeout: 5 * minuteMs },
    async (name) => {
      const consumer = await installAlone(root, tarballOf(name), tarballs, path.join(folder, "strangers", name));
      expect(checkContents(consumer, tarballOf(name).project)).toEqual([]);
      const manifest = JSON.parse(readFileSync(path.join(consumer.packageFolder, "package.json"), "utf8")) as {
        exports: Record<string, unknown>;
      };
      const doors = Object.keys(manifest.exports).filter((door) => door !== "./package.json");
      const imports = doors.map((door) => `import ${JSON.stringify(path.posix.join(name, door))};`).join("\n");
      expect(await runInside(consumer, ["--input-type=module", "--eval", imports])).toEqual({
        code: 0,
        stdout: "",
        stderr: "",
      });
      const examples = writeExamples(consumer);
      expect(examples, `runnable examples of the README of ${name}`).not.toEqual([]);
      for (const example of examples) {
        const { code, stdout, stderr } = await runInside(consumer, [example]);
        expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
        expect(stdout).not.toBe("");
      }
      if (name === "@turnkeeper/gateway") await servesConsole(consumer);
    },
  );

  it.each(commands)(
    "%s installs alone into an empty folder, and its command answers",
    { timeout: 5 * minuteMs },
    async (name) => {
      const consumer = await installAlone(root, tarballOf(name), tarballs, path.join(folder, "strangers", name));
      expect(checkContents(consumer, tarballOf(name).project)).toEqual([]);
      const { code, stdout, stderr } = await runInside(consumer, [
        path.join(consumer.folder, "node_modules", ".bin", name),
        "--help",
      ]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain(name);
      await usesItsFiles(consumer, name);
    },
  );

  it(
    "turnkeeper recovers a damaged store from its tarball, in a process of its own",
    { timeout: 5 * minuteMs },
    async () => {
      const name = "turnkeeper";
      const consumer = await installAlone(root, tarballOf(name), tarballs, path.join(folder, "recovering"));
      const inFolder = (file: string): string => path.join(consumer.folder, file);
      const command = (...args: readonly string[]): ReturnType<typeof runInside> =>
        runInside(consumer, [path.join(consumer.folder, "node_modules", ".bin", name), ...args]);
      const store = ["--store", inFolder("state.db")];
      expect(await command("run", "hello", "--session", "s", "--model", "demo/echo", ...store)).toMatchObject({
        code: 0,
      });
      const file = readFileSync(inFolder("state.db"));
      writeFileSync(inFolder("state.db"), file.fill(0x55, 0, 100));
      const damaged = await command("sessions", "show", "s", ...store);
      expect(damaged).toMatchObject({ code: 74, stderr: expect.stringContaining("sessions recover --source") });
      const recovered = ["--source", inFolder("state.db"), "--output", inFolder("new.db")];
      expect((await command("sessions", "recover", ...recovered)).stdout).toContain("recovered into");
      expect(await command("sessions", "show", "s", "--store", inFolder("new.db"))).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("hello"),
      });
    },
  );
});
