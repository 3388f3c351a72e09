/**
 * The transcript as a model is asked with it. Repairs are made in this list only, never in what is stored: neighbours
 * of one role are merged, empty content is left out, a call without a result gets one. What comes out is acceptable to
 * the strictest provider: alternation, pairing, no empty content.
 */
import type {
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ReasoningPart,
  LanguageModelV3TextPart,
  LanguageModelV3ToolCallPart,
  LanguageModelV3ToolResultPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import { summaryForModel } from "./compaction/summary-text.ts";
import type {
  AssistantBody,
  EntryBody,
  JsonValue,
  ProviderFields,
  ProviderToolPart,
  ToolBody,
} from "@turnkeeper/state-store";

type OwnCall = LanguageModelV3ToolCallPart;
type UserPart = Extract<LanguageModelV3Message, { role: "user" }>["content"][number];
type AssistantContent =
  | LanguageModelV3TextPart
  | LanguageModelV3ReasoningPart
  | LanguageModelV3ToolCallPart
  | LanguageModelV3ToolResultPart;

const withOptions = (provider: ProviderFields | undefined): { providerOptions?: SharedV3ProviderOptions } =>
  provider === undefined ? {} : { providerOptions: provider as SharedV3ProviderOptions };

function assistantContent(body: AssistantBody, modelId: string): AssistantContent[] {
  // Signatures and item ids mean something to the model that made them only, and a cut answer's are not whole.
  const isOwn = body.model === modelId && body.partial !== true;
  return body.parts.flatMap((part): AssistantContent[] => {
    const options = isOwn ? withOptions(part.provider) : {};
    switch (part.type) {
      case "text":
        return part.text.trim().length > 0 ? [{ type: "text", text: part.text, ...options }] : [];
      case "reasoning":
        return isOwn ? [{ type: "reasoning", text: part.text, ...options }] : [];
      case "tool-call":
        return [{ type: "tool-call", toolCallId: part.callId, toolName: part.name, input: part.input, ...options }];
      case "provider-tool":
        // It is a thing of its provider's, like a signature; half of one nobody takes.
        return isOwn && part.output !== undefined ? providerTool(part, part.output) : [];
    }
  });
}

function providerTool(part: ProviderToolPart, result: JsonValue): AssistantContent[] {
  const { callId: toolCallId, name: toolName, input, isError, provider, resultProvider } = part;
  const output = { type: isError ? "error-json" : "json", value: result as never } as const;
  return [
    { type: "tool-call", toolCallId, toolName, input, providerExecuted: true, ...withOptions(provider) },
    { type: "tool-result", toolCallId, toolName, output, ...withOptions(resultProvider) },
  ];
}

function resultPart({ callId, name, status, output: said, note }: ToolBody): LanguageModelV3ToolResultPart {
  const isError = status !== "ok";
  const text = typeof said === "string" ? said || "(no output)" : JSON.stringify(said);
  const output =
    typeof said === "string" || note !== undefined
      ? ({ type: isError ? "error-text" : "text", value: note === undefined ? text : `${text}\n\n${note}` } as const)
      : ({ type: isError ? "error-json" : "json", value: said as never } as const);
  return { type: "tool-result", toolCallId: callId, toolName: name, output };
}

function unanswered({ toolCallId, toolName }: LanguageModelV3ToolCallPart): LanguageModelV3ToolResultPart {
  const output = { type: "error-text", value: "No result of this call was recorded." } as const;
  return { type: "tool-result", toolCallId, toolName, output };
}

const userMessage = (text: string): LanguageModelV3Message => ({ role: "user", content: [{ type: "text", text }] });

const goOnFromTheCut =
  "Your answer was cut off there. Go on exactly where it stops, in the middle of a word if need be, and repeat nothing of it.";

/**
 * A prompt for one model that grows with its conversation: an entry costs what the entry is, not what came before it.
 * A message that was handed out is never changed afterwards; a neighbour that joins it makes a new one.
 */
export class GrowingPrompt {
  readonly #modelId: string;
  readonly #messages: LanguageModelV3Message[] = [];
  #open: LanguageModelV3ToolCallPart[] = [];
  #isCut = false;

  constructor(modelId: string) {
    this.#modelId = modelId;
  }

  /** The next entry in context order. */
  add(body: EntryBody): void {
    switch (body.role) {
      case "notice":
        return;
      case "summary":
        this.#close();
        return this.#append(userMessage(summaryForModel(body)));
      case "user":
        if (body.text.trim() === "") return;
        this.#close();
        return this.#append(userMessage(body.text));
      case "assistant": {
        this.#close();
        const content = assistantContent(body, this.#modelId);
        if (content.every((part) => part.type === "reasoning")) return;
        this.#open = content.filter((part) => part.type === "tool-call" && part.providerExecuted !== true) as OwnCall[];
        this.#isCut = body.partial === true;
        return this.#append({ role: "assistant", content });
      }
      case "tool": {
        // A result whose call is not in the context (archived with a summary) would be refused: it is left out too.
        const isOpen = this.#open.some((call) => call.toolCallId === body.callId);
        if (!isOpen) return;
        this.#open = this.#open.filter((call) => call.toolCallId !== body.callId);
        return this.#append({ role: "tool", content: [resultPart(body)] });
      }
    }
  }

  /** The request as of now; calls that are still open get a result in it, and may get their own later. */
  messages(system: string | undefined): LanguageModelV3Prompt {
    const head: LanguageModelV3Prompt = system ? [{ role: "system", content: system }] : [];
    return [...head, ...this.#messages.slice(0, -1), ...joined(this.#messages.at(-1), this.#closing())];
  }

  /** What makes a request of the messages: results for open calls, words to answer after an answer. */
  #closing(): LanguageModelV3Message | undefined {
    if (this.#open.length > 0) return { role: "tool", content: this.#open.map(unanswered) };
    if (this.#messages.at(-1)?.role !== "assistant") return undefined;
    return userMessage(this.#isCut ? goOnFromTheCut : "Go on.");
  }

  #close(): void {
    if (this.#open.length > 0) this.#append({ role: "tool", content: this.#open.map(unanswered) });
    this.#open = [];
  }

  #append(message: LanguageModelV3Message): void {
    // What stood before the first answer is gone; a conversation that begins with an answer is refused.
    if (this.#messages.length === 0 && message.role !== "user")
      this.#messages.push(userMessage("(What was said before is not shown.)"));
    this.#messages.push(...joined(this.#messages.pop(), message));
  }
}

/** Two neighbours as one message where they have one role. */
function joined(
  last: LanguageModelV3Message | undefined,
  next: LanguageModelV3Message | undefined,
): LanguageModelV3Message[] {
  if (last === undefined || next === undefined) return [last, next].filter((one) => one !== undefined);
  if (last.role !== next.role || last.role === "system") return [last, next];
  const added = next.role === "user" ? next.content.map(apart) : next.content;
  const content = [...last.content, ...(added as unknown[])];
  return [{ ...last, content } as LanguageModelV3Message];
}

/** Some servers put the parts of a message together without a break: two messages must not become one word. */
function apart(part: UserPart): UserPart {
  return part.type === "text" ? { ...part, text: `\n\n${part.text}` } : part;
}
