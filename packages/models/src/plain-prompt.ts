/** Prompts for models that lack a role or a part: what they cannot be told as such, they are told as text. */
import type {
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3TextPart,
  LanguageModelV3ToolResultOutput,
} from "@ai-sdk/provider";

type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];
type UserPart = Extract<LanguageModelV3Message, { role: "user" }>["content"][number];

const text = (words: string): LanguageModelV3TextPart => ({ type: "text", text: words });

function wordsOf(output: LanguageModelV3ToolResultOutput): string {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "execution-denied":
      return output.reason ?? "denied";
    case "json":
    case "error-json":
      return JSON.stringify(output.value);
    case "content":
      return output.value.map((part) => (part.type === "text" ? part.text : `(${part.type})`)).join("\n");
  }
}

function withoutCall(part: AssistantPart): AssistantPart {
  if (part.type === "tool-call") return text(`(I called ${part.toolName} with ${JSON.stringify(part.input)}.)`);
  if (part.type === "tool-result") return text(`(Its result: ${wordsOf(part.output)})`);
  return part;
}

/** Two neighbours of the user's as one message: formats that want turns to alternate want it everywhere. */
function joined(messages: readonly LanguageModelV3Message[]): LanguageModelV3Prompt {
  const prompt: LanguageModelV3Message[] = [];
  for (const message of messages) {
    const last = prompt.at(-1);
    if (message.role === "user" && last?.role === "user")
      prompt[prompt.length - 1] = { ...last, content: [...last.content, ...message.content] };
    else prompt.push(message);
  }
  return prompt;
}

/** The conversation without calls: a call stands in it as its caller's words, a result as words to it. */
export function withoutCalls(prompt: LanguageModelV3Prompt): LanguageModelV3Prompt {
  return joined(
    prompt.map((message): LanguageModelV3Message => {
      if (message.role === "assistant") return { ...message, content: message.content.map(withoutCall) };
      if (message.role !== "tool") return message;
      const content = message.content.flatMap((part): UserPart[] =>
        part.type === "tool-result" ? [text(`(Result of ${part.toolName}: ${wordsOf(part.output)})`)] : [],
      );
      return { role: "user", content: content.length > 0 ? content : [text("(No result.)")] };
    }),
  );
}

/** The conversation without a system message: its words come first in the first message of the user. */
export function withoutSystem(prompt: LanguageModelV3Prompt): LanguageModelV3Prompt {
  const words = prompt.flatMap((message) => (message.role === "system" ? [message.content] : [])).join("\n\n");
  const rest = prompt.filter(({ role }) => role !== "system");
  return words.trim() === "" ? rest : joined([{ role: "user", content: [text(words)] }, ...rest]);
}
