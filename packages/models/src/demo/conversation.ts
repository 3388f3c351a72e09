import type { LanguageModelV3Prompt, LanguageModelV3ToolResultOutput } from "@ai-sdk/provider";

/** One tool call of the running request, with what came of it. */
export interface ToolOutcome {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly isOk: boolean;
  readonly text: string;
}

export interface Exchange {
  readonly asked: string;
  readonly answered: string;
}

/** A prompt as the demo model understands it. */
export interface Conversation {
  /** The last thing the user said: what is to be done. */
  readonly request: string;
  /** What has been done about it, in order. */
  readonly outcomes: readonly ToolOutcome[];
  /** What was said before it. */
  readonly history: readonly Exchange[];
}

interface OpenExchange {
  readonly asked: string;
  readonly answers: string[];
  readonly outcomes: ToolOutcome[];
}

const inputOf = (input: unknown): ToolOutcome["input"] =>
  typeof input === "object" && input !== null ? Object.fromEntries(Object.entries(input)) : {};

function textOf(output: LanguageModelV3ToolResultOutput): Pick<ToolOutcome, "isOk" | "text"> {
  switch (output.type) {
    case "text":
      return { isOk: true, text: output.value };
    case "json":
      return { isOk: true, text: typeof output.value === "string" ? output.value : JSON.stringify(output.value) };
    case "error-text":
      return { isOk: false, text: output.value };
    case "error-json":
      return { isOk: false, text: JSON.stringify(output.value) };
    case "execution-denied":
      return { isOk: false, text: `it was not allowed${output.reason === undefined ? "" : `: ${output.reason}`}` };
    default:
      return { isOk: true, text: output.value.map((part) => (part.type === "text" ? part.text : "")).join("") };
  }
}

/** Reads a prompt from its beginning. Each text of the user opens a new exchange, a steering one in mid-work too. */
export function readConversation(prompt: LanguageModelV3Prompt): Conversation {
  const exchanges: OpenExchange[] = [];
  const calls = new Map<string, Pick<ToolOutcome, "tool" | "input">>();
  for (const message of prompt) {
    const exchange = exchanges.at(-1);
    switch (message.role) {
      case "system":
        break;
      case "user":
        for (const part of message.content)
          if (part.type === "text") exchanges.push({ asked: part.text.trim(), answers: [], outcomes: [] });
        break;
      case "assistant":
        for (const part of message.content) {
          if (part.type === "text") exchange?.answers.push(part.text);
          else if (part.type === "tool-call")
            calls.set(part.toolCallId, { tool: part.toolName, input: inputOf(part.input) });
        }
        break;
      case "tool":
        for (const part of message.content) {
          if (part.type !== "tool-result") continue;
          const call = calls.get(part.toolCallId) ?? { tool: part.toolName, input: {} };
          exchange?.outcomes.push({ ...call, ...textOf(part.output) });
        }
        break;
    }
  }
  const current = exchanges.at(-1);
  const history = exchanges.slice(0, -1).map(({ asked, answers }) => ({ asked, answered: answers.at(-1) ?? "" }));
  return { request: current?.asked ?? "", outcomes: current?.outcomes ?? [], history };
}
