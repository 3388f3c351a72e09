import { CodedError } from "@turnkeeper/kernel";
import { expect, test } from "vitest";
import {
  builtinTools,
  createListFilesTool,
  createReadFileTool,
  createShellTool,
  createWriteFileTool,
  killMarkedProcesses,
} from "../src/index.ts";
import { deps, rejection } from "./workbench.ts";

/** The message of a coded error that the call throws, behind its code. */
function messageOf(build: () => unknown): string {
  try {
    build();
    return "accepted";
  } catch (error) {
    return CodedError.is(error, "OPTION_INVALID") ? error.message : String(error);
  }
}

test("the tools are frozen, named as agreed, and ask before they change anything", () => {
  const tools = builtinTools(deps);
  expect(tools.map((tool) => [tool.name, tool.needsApproval])).toEqual([
    ["shell", true],
    ["read_file", false],
    ["write_file", true],
    ["edit_file", true],
    ["list_files", false],
    ["search_files", false],
    ["fetch_url", true],
    ["delegate", false],
  ]);
  expect(tools.every((tool) => Object.isFrozen(tool))).toBe(true);
});

test("arguments beside the schema are refused, and the schema that a provider gets says so", async () => {
  const fitting = [
    { command: "ls" },
    { path: "a" },
    { path: "a", content: "" },
    { path: "a", old_text: "b", new_text: "" },
    {},
    { pattern: "a" },
    { url: "https://example.com" },
    { task: "look" },
  ];
  for (const [index, tool] of builtinTools(deps).entries()) {
    const schema = tool.input["~standard"];
    expect(schema.jsonSchema?.input({ target: "draft-07" })).toMatchObject({
      type: "object",
      additionalProperties: false,
    });
    expect((await schema.validate(fitting[index])).issues).toBeUndefined();
    expect((await schema.validate({ ...fitting[index], cwd: "/" })).issues).toHaveLength(1);
    expect((await schema.validate("text")).issues).toHaveLength(1);
  }
});

test("a call may not ask for more time or more lines than the tool may give", async () => {
  const shell = createShellTool(deps, { timeoutMs: 10_000 }).input["~standard"];
  expect((await shell.validate({ command: "ls", timeout_s: 10 })).issues).toBeUndefined();
  expect((await shell.validate({ command: "ls", timeout_s: 10.5 })).issues).toHaveLength(1);
  expect((await shell.validate({ command: "ls", timeout_s: 0 })).issues).toHaveLength(1);
  const readFile = createReadFileTool({}, { readLinesMax: 5 }).input["~standard"];
  expect((await readFile.validate({ path: "a", limit: 6 })).issues).toHaveLength(1);
  expect((await readFile.validate({ path: "", offset: 0 })).issues).toHaveLength(2);
});

test("an option that is misspelt or out of range is refused by name, with what was expected and what came", async () => {
  const misspelt = { graceMS: 1 } as object;
  expect(messageOf(() => createShellTool(deps, misspelt))).toBe(
    'createShellTool: options: Unrecognized key: "graceMS".',
  );
  expect(messageOf(() => builtinTools(deps, misspelt))).toBe('builtinTools: options: Unrecognized key: "graceMS".');
  expect(messageOf(() => createShellTool(deps, { timeoutMs: -5 }))).toBe(
    "createShellTool: option timeoutMs: Too small: expected number to be >0, got -5.",
  );
  expect(messageOf(() => createShellTool(deps, { timeoutMs: Number.NaN }))).toMatch(/option timeoutMs: .*got NaN\.$/);
  expect(messageOf(() => createShellTool(deps, { drainMs: Infinity }))).toMatch(/option drainMs: .*got Infinity\.$/);
  expect(messageOf(() => createListFilesTool({ listEntriesMax: 0 }))).toMatch(
    /^createListFilesTool: option listEntriesMax: .*got 0\.$/,
  );
  for (const pattern of ["state.db", "/a/*", "/a*/b", "/a/b**"]) {
    expect(messageOf(() => createWriteFileTool(deps, { forbiddenPaths: [pattern] }))).toContain(
      `option forbiddenPaths.0: expected an absolute path, a star only at the end of a name, got ${JSON.stringify(pattern)}`,
    );
  }
  expect((await rejection(killMarkedProcesses(deps, { A: "b" }, { graceMs: -1 }))).message).toMatch(
    /option graceMs: .*got -1\.$/,
  );
});
