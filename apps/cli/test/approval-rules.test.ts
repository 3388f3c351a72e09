import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, it } from "vitest";
import { eventsOf, makeHome, runCli, typesOf } from "./outside/built-cli.ts";
import { compatibleConfig, openAiCall, openAiText, serveModel } from "./outside/model-server.ts";

/** A home with rules for approval, and a model that makes one call and then ends. */
async function homeWith(rules: string, tool: string, input: Readonly<Record<string, unknown>>): Promise<string> {
  const server = await serveModel(openAiCall(tool, JSON.stringify(input)), openAiText("Done."));
  return makeHome(`${compatibleConfig(server)}tools: { approval: ${rules} }\n`);
}

it("a command that a rule allows runs where nobody can be asked, and nothing behind it does", async () => {
  const rules = '{ shell: { allow: ["echo *"] } }';
  const home = await homeWith(rules, "shell", { command: "echo allowed" });
  const allowed = await runCli(["run", "go", "--json"], { home });
  expect(eventsOf(allowed.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({
    ok: true,
    output: expect.stringContaining("allowed\n"),
  });
  expect(typesOf(allowed.stdout)).not.toContain("approval.requested");
  const other = await homeWith(rules, "shell", { command: "echo allowed; touch made" });
  const denied = await runCli(["run", "go", "--json"], { home: other });
  expect(eventsOf(denied.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({ ok: false });
  expect(existsSync(path.join(other, "made"))).toBe(false);
});

it("what a rule denies is denied with --yes too; the rest is allowed", async () => {
  const rules = '{ "*": deny, shell: { deny: ["touch *"], otherwise: ask } }';
  const home = await homeWith(rules, "shell", { command: "cd . && touch made" });
  const denied = await runCli(["run", "go", "--yes", "--json"], { home });
  expect(eventsOf(denied.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({ ok: false });
  expect(denied.stderr).toContain("shell is denied by the rule shell.deny: touch *.");
  expect(existsSync(path.join(home, "made"))).toBe(false);
  const other = await homeWith(rules, "write_file", { path: "made", content: "x" });
  await runCli(["run", "go", "--yes", "--json"], { home: other });
  expect(existsSync(path.join(other, "made"))).toBe(true);
});

it("with rules that cannot be read, --yes allows nothing", async () => {
  const home = await homeWith('{ shell: { deny: ["touch *"] } }', "shell", { command: "touch made" });
  const file = path.join(home, "config.yaml");
  const text = await readFile(file, "utf8");
  await writeFile(file, `${text}tools: { enabled: [shell] }\n`);
  // The model comes from the command line: the file's is not read either.
  const address = /base_url: "?([^" }]+)/.exec(text)?.[1] ?? "";
  const model = ["--model", "openai/any"];
  const env = { OPENAI_API_KEY: "any", OPENAI_BASE_URL: address };
  const denied = await runCli(["run", "go", "--yes", "--json", ...model], { home, env });
  expect(denied.stderr).toMatch(
    /is not YAML \(Map keys must be unique\); using the defaults, and --yes allows nothing/,
  );
  expect(denied.stderr).toContain("shell is denied: config.yaml cannot be read, and may forbid it.");
  expect(eventsOf(denied.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({ ok: false });
  expect(existsSync(path.join(home, "made"))).toBe(false);
});

it("a tool that asks for nothing by itself may be made to", async () => {
  const home = await homeWith('{ read_file: { deny: ["*.env"] } }', "read_file", { path: "prod.env" });
  await writeFile(path.join(home, "prod.env"), "secret-value");
  const { stdout } = await runCli(["run", "go", "--json"], { home });
  expect(eventsOf(stdout).find(({ type }) => type === "tool.finished")).toMatchObject({ ok: false });
  expect(stdout).not.toContain("secret-value");
});

it("edits, searches and fetches are offered; a page inside is refused unless its host is allowed", async () => {
  const home = await homeWith("allow", "edit_file", { path: "note", old_text: "a", new_text: "b" });
  await writeFile(path.join(home, "note"), "a\n");
  await runCli(["run", "go"], { home });
  expect(await readFile(path.join(home, "note"), "utf8")).toBe("b\n");
  const search = await homeWith("ask", "search_files", { pattern: "^model:" });
  const found = await runCli(["run", "go", "--json"], { home: search });
  // The settings of this home stand beside its store and are nobody's to read.
  expect(eventsOf(found.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({
    ok: true,
    output: expect.stringContaining("No line fits"),
  });
  const page = await serveModel(openAiText("x"));
  const fetch = await homeWith("allow", "fetch_url", { url: page.url });
  const refused = await runCli(["run", "go", "--json"], { home: fetch });
  expect(eventsOf(refused.stdout).find(({ type }) => type === "tool.finished")).toMatchObject({
    ok: false,
    output: expect.stringContaining("not on the public Internet"),
  });
});
