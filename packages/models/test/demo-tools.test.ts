import type { LanguageModelV3Prompt, LanguageModelV3ToolResultOutput } from "@ai-sdk/provider";
import { describe, expect, it } from "vitest";
import { demoSession, workspaceTools } from "./demo-session.ts";
import { answerOf, opened, partsOf } from "./model-answer.ts";

const files = {
  "README.md": "# Top",
  "packages/alpha/README.md": "# alpha\n\nshort",
  "packages/alpha/src/index.ts": "export {};",
  "packages/beta/README.md": `# beta, the long one\n${"words ".repeat(50)}`,
  "packages/beta/LICENSE": "x".repeat(4000),
  "packages/gamma/package.json": "{}",
  "packages/notes.txt": "n".repeat(9000),
  "node_modules/loud/README.md": "r".repeat(90_000),
};
const asked = "List the files in packages and tell me which README is longest";

describe("demo/tools", () => {
  it("answers which README is longest from what its tools said", async () => {
    const session = await demoSession("demo/tools", workspaceTools(files));
    const { text, calls } = await session.ask(asked);
    expect(calls).toEqual([
      { name: "list_files", input: { path: "packages" } },
      { name: "list_files", input: { path: "packages/alpha" } },
      { name: "list_files", input: { path: "packages/beta" } },
      { name: "list_files", input: { path: "packages/gamma" } },
      { name: "read_file", input: { path: "packages/beta/README.md", limit: 1 } },
    ]);
    expect(text).toContain("packages holds 3 folders and 1 file:\nalpha/\nbeta/\ngamma/\nnotes.txt  9000 bytes");
    expect(text).toContain(
      `The longest README is packages/beta/README.md with ${files["packages/beta/README.md"].length} bytes, of 2 in packages and its folders. It begins: "# beta, the long one".`,
    );
    expect(text).toContain("Next: packages/alpha/README.md (14 bytes).");
  });

  it("remembers it when the session goes on", async () => {
    const session = await demoSession("demo/tools", workspaceTools(files));
    await session.ask(asked);
    for (const followUp of [
      "What did I ask before?",
      "Which one was it?",
      "Which README was the longest again?",
      "Do you remember?",
      "What did you find?",
    ]) {
      const { text, calls } = await session.ask(followUp);
      expect(calls, `${followUp}`).toEqual([]);
      expect(text, `${followUp}`).toContain(`"${asked}"`);
      expect(text, `${followUp}`).toContain("packages/beta/README.md");
    }
  });

  it("has nothing to remember in a new session, and says so", async () => {
    const session = await demoSession("demo/tools", workspaceTools(files));
    expect((await session.ask("What did I ask before?")).text).toContain("This is the first message of this session");
  });

  it.each<[string, string, Record<string, unknown>, string]>([
    ["List the files here", "list_files", { path: "." }, "The workspace holds 2 folders and 1 file"],
    [
      "please show me the files in ./packages/beta/.",
      "list_files",
      { path: "./packages/beta" },
      "It failed or is empty",
    ],
    [
      "What files are in packages/beta?",
      "list_files",
      { path: "packages/beta" },
      "packages/beta holds 0 folders and 2 files",
    ],
    [
      "Read packages/alpha/README.md",
      "read_file",
      { path: "packages/alpha/README.md" },
      "packages/alpha/README.md says:\n\n# alpha\n\nshort",
    ],
    ["read the file `README.md`.", "read_file", { path: "README.md" }, "# Top"],
    [
      "Write hello world to notes/a.txt",
      "write_file",
      { path: "notes/a.txt", content: "hello world" },
      'Done. Wrote 11 bytes to "notes/a.txt" (new file).',
    ],
    [
      "Run `ls -l | head -3`",
      "shell",
      { command: "ls -l | head -3" },
      "answered:\n\nran ls -l | head -3\n[exit code 0]",
    ],
    ["show me README", "read_file", { path: "README" }, "Could not read"],
    ["Can you show the folders", "list_files", { path: "." }, "The workspace holds 2 folders"],
    ["run echo 'it works'", "shell", { command: "echo 'it works'" }, "ran echo 'it works'"],
    ["sleep 30", "shell", { command: "sleep 30" }, "ran sleep 30"],
    ["Sleep for 1.5 seconds", "shell", { command: "sleep 1.5" }, "ran sleep 1.5"],
  ])("%j calls %s with %j", async (request, name, input, part) => {
    const tools = {
      ...workspaceTools(files),
      ...(part.startsWith("It failed")
        ? {
            list_files: () => {
              throw new Error("It failed or is empty");
            },
          }
        : {}),
    };
    const { text, calls } = await (await demoSession("demo/tools", tools)).ask(request);
    expect(calls).toEqual([{ name, input }]);
    expect(text).toContain(part);
  });

  it("tells a failed tool's words instead of an answer", async () => {
    const session = await demoSession("demo/tools", workspaceTools(files));
    expect((await session.ask("Read missing.txt")).text).toContain(
      'The tool read_file failed: Could not read "missing.txt": it does not exist.',
    );
    expect((await session.ask("List the files in nowhere and tell me which README is longest")).text).toContain(
      'I could not look into nowhere: Could not list "nowhere"',
    );
    const { text, calls } = await session.ask("List the files in packages/gamma and tell me which README is longest");
    expect(calls).toHaveLength(1);
    expect(text).toContain("I found no README");
  });

  it("counts the folders it could not look into", async () => {
    const tools = workspaceTools(files);
    const list = (input: Readonly<Record<string, unknown>>): string => {
      if (input["path"] === "packages/alpha") throw new Error("permission denied");
      return tools["list_files"]!(input);
    };
    const { text } = await (await demoSession("demo/tools", { ...tools, list_files: list })).ask(asked);
    expect(text).toContain("packages/beta/README.md with");
    expect(text).toContain("I could not look into 1 of the folders.");
  });

  it("says which tool it lacks", async () => {
    const { text, calls } = await (await demoSession("demo/tools", {})).ask("Run ls");
    expect(calls).toEqual([]);
    expect(text).toContain("I would call the tool shell, and this session does not offer it");
  });

  it("says what it can do when it does not understand", async () => {
    const { text, calls } = await (
      await demoSession("demo/tools", workspaceTools(files))
    ).ask("What is the meaning of life?");
    expect(calls).toEqual([]);
    expect(text).toContain('I read: "What is the meaning of life?". That is none of the sentences I know.');
    expect(text).toContain('- "Run COMMAND"');
  });

  it("takes a message that steers it in mid-work for the new request", async () => {
    const model = await opened("demo/tools");
    const tools = [{ type: "function", name: "list_files", inputSchema: {} } as const];
    const prompt: LanguageModelV3Prompt = [
      { role: "user", content: [{ type: "text", text: "sleep 30" }] },
      {
        role: "assistant",
        content: [{ type: "tool-call", toolCallId: "c1", toolName: "shell", input: { command: "sleep 30" } }],
      },
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c1",
            toolName: "shell",
            output: { type: "text", value: "[exit code 0]" },
          },
        ],
      },
      {
        role: "user",
        content: [
          { type: "text", text: "forget that" },
          { type: "text", text: "list the files in src" },
        ],
      },
    ];
    const { stream } = await model.languageModel.doStream({ prompt, tools });
    expect(answerOf(await partsOf(stream)).calls).toEqual([{ name: "list_files", input: '{"path":"src"}' }]);
  });

  it.each(["denied", "json", "content"] as const)("understands a %s result", async (kind) => {
    const model = await opened("demo/tools");
    const output: Readonly<Record<typeof kind, LanguageModelV3ToolResultOutput>> = {
      denied: { type: "execution-denied", reason: "no terminal" },
      json: { type: "json", value: { exitCode: 0 } },
      content: { type: "content", value: [{ type: "text", text: "plain words" }] },
    };
    const prompt: LanguageModelV3Prompt = [
      { role: "user", content: [{ type: "text", text: "run ls" }] },
      {
        role: "assistant",
        content: [{ type: "tool-call", toolCallId: "c1", toolName: "shell", input: { command: "ls" } }],
      },
      { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", toolName: "shell", output: output[kind] }] },
    ];
    const { stream } = await model.languageModel.doStream({
      prompt,
      tools: [{ type: "function", name: "shell", inputSchema: {} }],
    });
    const expected = {
      denied: "The tool shell failed: it was not allowed: no terminal",
      json: '{"exitCode":0}',
      content: "plain words",
    };
    expect(answerOf(await partsOf(stream)).text).toContain(expected[kind]);
  });

  it("is not held up by megabytes of any text", async () => {
    for (const piece of ["read a.", " ", "write x to ", "in the ", "what files ", "word "]) {
      const session = await demoSession("demo/tools", workspaceTools(files));
      const { text } = await session.ask(`read ${piece.repeat(5_000_000 / piece.length)}!`);
      expect(text.length).toBeLessThan(2000);
    }
    const echo = await demoSession("demo/echo", {});
    expect((await echo.ask("word ".repeat(1_000_000))).text).toContain("(4995999 characters more)");
  });

  it("answers an empty prompt and an empty message", async () => {
    const model = await opened("demo/tools");
    for (const prompt of [
      [],
      [{ role: "user", content: [] }],
      [{ role: "user", content: [{ type: "text", text: "" }] }],
    ] satisfies LanguageModelV3Prompt[]) {
      const { stream } = await model.languageModel.doStream({ prompt });
      expect(answerOf(await partsOf(stream)).text).toContain("none of the sentences I know");
    }
  });
});
