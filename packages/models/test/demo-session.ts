import type {
  LanguageModelV3FunctionTool,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultOutput,
} from "@ai-sdk/provider";
import { systemHost } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import { resolveModel } from "@turnkeeper/models";
import { answerOf, partsOf } from "./model-answer.ts";

type Input = Readonly<Record<string, unknown>>;
export type FakeTools = Readonly<Record<string, (input: Input) => string>>;

const textOf = (input: Input, key: string): string => {
  const value = input[key] ?? "";
  if (typeof value !== "string") throw new TypeError(`${key} must be a text.`);
  return value;
};

/** A workspace in memory: paths to contents, answered in the words of the real tools. */
export function workspaceTools(files: Readonly<Record<string, string>>): FakeTools {
  return {
    list_files: (input) => {
      const path = textOf(input, "path");
      const prefix = path === "" || path === "." ? "" : `${path}/`;
      const inside = Object.entries(files).filter(([name]) => name.startsWith(prefix));
      if (inside.length === 0) throw new Error(`Could not list ${JSON.stringify(path)}: it does not exist.`);
      const lines = inside.map(([name, content]) => {
        const rest = name.slice(prefix.length);
        return rest.includes("/") ? `${rest.slice(0, rest.indexOf("/"))}/` : `${rest}  ${content.length} bytes`;
      });
      return [...new Set(lines)].toSorted().join("\n");
    },
    read_file: (input) => {
      const path = textOf(input, "path");
      const content = files[path];
      if (content === undefined) throw new Error(`Could not read ${JSON.stringify(path)}: it does not exist.`);
      return content;
    },
    write_file: (input) =>
      `Wrote ${textOf(input, "content").length} bytes to ${JSON.stringify(textOf(input, "path"))} (new file).`,
    shell: (input) => `ran ${textOf(input, "command")}\n[exit code 0]`,
  };
}

export interface TurnRecord {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly input: Input }[];
}

/** A session with a demo model: a loop over its calls as an agent has one, the conversation kept from turn to turn. */
export async function demoSession(
  name: string,
  tools: FakeTools,
): Promise<{ model: ResolvedModel; prompt: LanguageModelV3Prompt; ask(request: string): Promise<TurnRecord> }> {
  const model = await resolveModel(name, { host: systemHost });
  const declared = Object.keys(tools).map((tool): LanguageModelV3FunctionTool => ({
    type: "function",
    name: tool,
    inputSchema: { type: "object" },
  }));
  const prompt: LanguageModelV3Prompt = [{ role: "system", content: "You are an agent." }];
  const run = (tool: string, input: Input): LanguageModelV3ToolResultOutput => {
    try {
      return { type: "text", value: tools[tool]!(input) };
    } catch (error) {
      return { type: "error-text", value: error instanceof Error ? error.message : String(error) };
    }
  };

  const ask = async (request: string): Promise<TurnRecord> => {
    prompt.push({ role: "user", content: [{ type: "text", text: request }] });
    const calls: { name: string; input: Input }[] = [];
    for (let step = 0; step < 8; step++) {
      const { stream } = await model.languageModel.doStream({ prompt, tools: declared });
      const parts = await partsOf(stream);
      const { text } = answerOf(parts);
      const made = parts.flatMap((part) =>
        part.type === "tool-call" ? [{ ...part, parsed: JSON.parse(part.input) as Input }] : [],
      );
      prompt.push({
        role: "assistant",
        content: [
          { type: "text", text },
          ...made.map(
            ({ toolCallId, toolName, parsed }) => ({ type: "tool-call", toolCallId, toolName, input: parsed }) as const,
          ),
        ],
      });
      if (made.length === 0) return { text, calls };
      calls.push(...made.map(({ toolName, parsed }) => ({ name: toolName, input: parsed })));
      prompt.push({
        role: "tool",
        content: made.map(
          ({ toolCallId, toolName, parsed }) =>
            ({ type: "tool-result", toolCallId, toolName, output: run(toolName, parsed) }) as const,
        ),
      });
    }
    throw new Error("The demo model did not come to an end within 8 steps.");
  };
  return { model, prompt, ask };
}
