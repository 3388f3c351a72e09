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
import type { AssistantBody, EntryBody, ProviderFields, ToolBody } from "@turnkeeper/state-store";

type AssistantContent = LanguageModelV3TextPart | LanguageModelV3ReasoningPart | LanguageModelV3ToolCallPart;

const withOptions = (provider: ProviderFields | undefined): { providerOptions?: SharedV3ProviderOptions } =>
  provider === undefined ? {} : { providerOptions: provider as SharedV3ProviderOptions };

function assistantContent(body: AssistantBody, modelId: string): AssistantContent[] {
  // Signatures and item ids mean something to the model that made them only, and a cut reasoning block has none.
  const isOwn = body.model === modelId;
  const keepsReasoning = isOwn && body.partial !== true;
  return body.parts.flatMap((part): AssistantContent[] => {
    const options = isOwn ? withOptions(part.provider) : {};
    switch (part.type) {
      case "text":
        return part.text.trim().length > 0 ? [{ type: "text", text: part.text, ...options }] : [];
      case "reasoning":
        return keepsReasoning ? [{ type: "reasoning", text: part.text, ...options }] : [];
      case "tool-call":
        return [{ type: "tool-call", toolCallId: part.callId, toolName: part.name, input: part.input, ...options }];
    }
  });
}

function resultPart(body: ToolBody): LanguageModelV3ToolResultPart {
  const isError = body.status !== "ok";
  const output =
    typeof body.output === "string"
      ? ({ type: isError ? "error-text" : "text", value: body.output } as const)
      : ({ type: isError ? "error-json" : "json", value: body.output as never } as const);
  return { type: "tool-result", toolCallId: body.callId, toolName: body.name, output };
}

function append(prompt: LanguageModelV3Prompt, message: LanguageModelV3Message): void {
  const last = prompt.at(-1);
  if (last && last.role === message.role && last.role !== "system") {
    (last.content as unknown[]).push(...(message.content as unknown[]));
  } else {
    prompt.push(message);
  }
}

/** Builds the prompt for `modelId` from entries in context order. */
export function buildPrompt(
  system: string | undefined,
  bodies: readonly EntryBody[],
  modelId: string,
): LanguageModelV3Prompt {
  const prompt: LanguageModelV3Prompt = system ? [{ role: "system", content: system }] : [];
  let open: LanguageModelV3ToolCallPart[] = [];
  const closeOpen = (): void => {
    const unanswered = open.map((call): LanguageModelV3ToolResultPart => ({
      type: "tool-result",
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      output: { type: "error-text", value: "No result of this call was recorded." },
    }));
    if (unanswered.length > 0) append(prompt, { role: "tool", content: unanswered });
    open = [];
  };
  for (const body of bodies) {
    switch (body.role) {
      case "notice":
        break;
      case "summary":
      case "user":
        closeOpen();
        append(prompt, { role: "user", content: [{ type: "text", text: body.text }] });
        break;
      case "assistant": {
        closeOpen();
        const content = assistantContent(body, modelId);
        if (content.every((part) => part.type === "reasoning")) break;
        open = content.filter((part) => part.type === "tool-call");
        append(prompt, { role: "assistant", content });
        break;
      }
      case "tool":
        // A result whose call is not in the context (archived with a summary) would be refused: it is left out too.
        if (!open.some((call) => call.toolCallId === body.callId)) break;
        open = open.filter((call) => call.toolCallId !== body.callId);
        append(prompt, { role: "tool", content: [resultPart(body)] });
        break;
    }
  }
  closeOpen();
  return prompt;
}
