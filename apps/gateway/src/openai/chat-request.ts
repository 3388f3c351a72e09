import type { CallerTool, ModelSettings } from "@turnkeeper/agent-core";
import { z } from "zod";
import type { Conversation, Said } from "./said.ts";
import { unfit } from "./said.ts";

/** Text, or parts of which only text can be said here. */
type Content = string | readonly { readonly type: string; readonly text?: string | undefined }[];

interface FunctionCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

type Message =
  | { readonly role: "system" | "developer" | "user"; readonly content: Content }
  | {
      readonly role: "assistant";
      readonly content?: Content | null | undefined;
      readonly refusal?: string | null | undefined;
      readonly tool_calls?: readonly FunctionCall[] | null | undefined;
    }
  | { readonly role: "tool"; readonly content: Content; readonly tool_call_id: string };

export interface FunctionFields {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly parameters?: Record<string, unknown> | null | undefined;
}

export interface JsonFormat {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly schema?: Record<string, unknown> | null | undefined;
}

/** What is read of a request for a completion. */
export interface ChatBody {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly stream?: boolean | null | undefined;
  readonly stream_options?: { readonly include_usage?: boolean | null | undefined } | null | undefined;
  readonly tools?: readonly { readonly function: FunctionFields }[] | null | undefined;
  readonly tool_choice?:
    | "none"
    | "auto"
    | "required"
    | { readonly function: { readonly name: string } }
    | null
    | undefined;
  readonly response_format?:
    | { readonly type: "text" | "json_object" }
    | { readonly type: "json_schema"; readonly json_schema: JsonFormat }
    | null
    | undefined;
  readonly max_tokens?: number | null | undefined;
  readonly max_completion_tokens?: number | null | undefined;
  readonly temperature?: number | null | undefined;
  readonly top_p?: number | null | undefined;
  readonly presence_penalty?: number | null | undefined;
  readonly frequency_penalty?: number | null | undefined;
  readonly stop?: string | readonly string[] | null | undefined;
  readonly seed?: number | null | undefined;
  readonly store?: boolean | null | undefined;
  readonly prompt_cache_key?: string | null | undefined;
}

const content: z.ZodType<Content> = z.union([
  z.string(),
  z.array(z.looseObject({ type: z.string(), text: z.string().optional() })).min(1),
]);

export const callId: z.ZodType<string> = z.string().min(1).max(400);
export const toolName: z.ZodType<string> = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/);

const call = z.looseObject({
  id: callId,
  type: z.literal("function"),
  function: z.looseObject({ name: toolName, arguments: z.string() }),
});

const message: z.ZodType<Message> = z.discriminatedUnion("role", [
  z.looseObject({ role: z.enum(["system", "developer"]), content }),
  z.looseObject({ role: z.literal("user"), content }),
  z.looseObject({
    role: z.literal("assistant"),
    content: content.nullish(),
    refusal: z.string().nullish(),
    tool_calls: z.array(call).nullish(),
  }),
  z.looseObject({ role: z.literal("tool"), content, tool_call_id: callId }),
]);

const parameters = z.record(z.string(), z.unknown()).nullish();

export const functionFields: {
  readonly name: z.ZodType<string>;
  readonly description: z.ZodType<string | null | undefined>;
  readonly parameters: z.ZodType<Record<string, unknown> | null | undefined>;
} = { name: toolName, description: z.string().nullish(), parameters };

const tool = z.looseObject({
  type: z.literal("function", "Only function tools are passed on."),
  function: z.looseObject(functionFields),
});

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: toolName }) }),
]);

export const jsonFormat: {
  readonly name: z.ZodType<string>;
  readonly description: z.ZodType<string | null | undefined>;
  readonly schema: z.ZodType<Record<string, unknown> | null | undefined>;
} = {
  name: z.string(),
  description: z.string().nullish(),
  schema: z.record(z.string(), z.unknown()).nullish(),
};

const responseFormat = z.union([
  z.looseObject({ type: z.enum(["text", "json_object"]) }),
  z.looseObject({ type: z.literal("json_schema"), json_schema: z.looseObject(jsonFormat) }),
]);

/** A field that would change the answer and cannot be had here, but for this value. */
export const only = (value: number | boolean): z.ZodType<unknown> =>
  z.literal(value, `Only ${String(value)} can be had here.`).nullish();
export const absent: z.ZodType<unknown> = z.null("It cannot be had here.").optional();

export const tokenCount: z.ZodType<number | null | undefined> = z.int().min(1).nullish();

export const chatRequest: z.ZodType<ChatBody> = z.looseObject({
  model: z.string().describe("As `GET /v1/models` names it."),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  tools: z.array(tool).max(128).nullish(),
  tool_choice: toolChoice.nullish(),
  response_format: responseFormat.nullish(),
  max_tokens: tokenCount,
  max_completion_tokens: tokenCount,
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
  seed: z.int().nullish(),
  store: z.boolean().nullish().describe("Keep a session that no X-Session-Id names. Default: false."),
  prompt_cache_key: z.string().max(200).nullish().describe("As X-Session-Key."),
  n: only(1),
  logprobs: only(false),
  parallel_tool_calls: only(true),
  audio: absent,
  functions: absent,
  function_call: absent,
  logit_bias: absent,
  web_search_options: absent,
});

function textOf(value: Content, param: string): string {
  if (typeof value === "string") return value;
  return value
    .map(({ type, text }, index) => {
      if (type === "text" && text !== undefined) return text;
      throw unfit(`${param}[${index}]`, `Only text can be said here, not ${JSON.stringify(type.slice(0, 60))}.`);
    })
    .join("");
}

/** The messages of a request as a conversation; throws what does not fit. */
export function conversationOf({ messages }: ChatBody): Conversation {
  const instructions: string[] = [];
  const said = messages.flatMap((one, index): Said[] => {
    const param = `messages[${index}].content`;
    switch (one.role) {
      case "system":
      case "developer":
        instructions.push(textOf(one.content, param));
        return [];
      case "user":
        return [{ role: "user", text: textOf(one.content, param) }];
      case "assistant": {
        const calls = (one.tool_calls ?? []).map(({ id, function: { name, arguments: inputText } }) => ({
          callId: id,
          name,
          inputText,
        }));
        return [{ role: "assistant", text: one.content ? textOf(one.content, param) : (one.refusal ?? ""), calls }];
      }
      case "tool":
        return [{ role: "tool", callId: one.tool_call_id, output: textOf(one.content, param) }];
    }
  });
  return { instructions: instructions.length > 0 ? instructions.join("\n\n") : undefined, said };
}

export function callersToolsOf({ tools }: ChatBody): readonly CallerTool[] {
  return (tools ?? []).map(({ function: { name, description, parameters: inputSchema } }) => ({
    name,
    ...(description ? { description } : {}),
    ...(inputSchema ? { inputSchema } : {}),
  }));
}

function formatOf(format: ChatBody["response_format"]): ModelSettings {
  if (format?.type === "json_schema") return jsonFormatOf(format.json_schema);
  return format?.type === "json_object" ? { responseFormat: { type: "json" } } : {};
}

export function jsonFormatOf({ name, description, schema }: JsonFormat): ModelSettings {
  return {
    responseFormat: {
      type: "json",
      name,
      ...(description ? { description } : {}),
      ...(schema ? { schema } : {}),
    },
  };
}

function choiceOf(choice: ChatBody["tool_choice"]): ModelSettings {
  if (!choice) return {};
  if (typeof choice === "string") return { toolChoice: { type: choice } };
  return { toolChoice: { type: "tool", toolName: choice.function.name } };
}

/** What is asked of the model, in the AI SDK's words. */
export function modelSettingsOf(body: ChatBody): ModelSettings {
  const { temperature, top_p, presence_penalty, frequency_penalty, stop, seed } = body;
  const maxOutputTokens = body.max_completion_tokens ?? body.max_tokens;
  return {
    ...formatOf(body.response_format),
    ...choiceOf(body.tool_choice),
    ...(maxOutputTokens ? { maxOutputTokens } : {}),
    ...(typeof temperature === "number" ? { temperature } : {}),
    ...(typeof top_p === "number" ? { topP: top_p } : {}),
    ...(typeof presence_penalty === "number" ? { presencePenalty: presence_penalty } : {}),
    ...(typeof frequency_penalty === "number" ? { frequencyPenalty: frequency_penalty } : {}),
    ...(stop ? { stopSequences: typeof stop === "string" ? [stop] : [...stop] } : {}),
    ...(typeof seed === "number" ? { seed } : {}),
  };
}
