import type { CallerTool, ModelSettings } from "@turnkeeper/agent-core";
import { z } from "zod";
import {
  absent,
  callId,
  functionFields,
  jsonFormat,
  jsonFormatOf,
  only,
  tokenCount,
  toolName,
} from "./chat-request.ts";
import type { FunctionFields, JsonFormat } from "./chat-request.ts";
import type { Conversation, Said, SaidCall } from "./said.ts";
import { unfit } from "./said.ts";

type Content =
  | string
  | readonly {
      readonly type: string;
      readonly text?: string | undefined;
      readonly refusal?: string | undefined;
    }[];

type Item =
  | {
      readonly type?: "message" | undefined;
      readonly role: "user" | "assistant" | "system" | "developer";
      readonly content: Content;
    }
  | { readonly type: "function_call"; readonly call_id: string; readonly name: string; readonly arguments: string }
  | { readonly type: "function_call_output"; readonly call_id: string; readonly output: Content }
  | { readonly type: "reasoning" };

/** What is read of a request for a response. */
export interface ResponseBody {
  readonly model: string;
  readonly input: string | readonly Item[];
  readonly instructions?: string | null | undefined;
  readonly previous_response_id?: string | null | undefined;
  readonly store?: boolean | null | undefined;
  readonly stream?: boolean | null | undefined;
  readonly tools?: readonly FunctionFields[] | null | undefined;
  readonly tool_choice?: "none" | "auto" | "required" | { readonly name: string } | null | undefined;
  readonly text?:
    | {
        readonly format?:
          | { readonly type: "text" | "json_object" }
          | ({ readonly type: "json_schema" } & JsonFormat)
          | null
          | undefined;
      }
    | null
    | undefined;
  readonly max_output_tokens?: number | null | undefined;
  readonly temperature?: number | null | undefined;
  readonly top_p?: number | null | undefined;
  readonly prompt_cache_key?: string | null | undefined;
}

const content = z.union([
  z.string(),
  z.array(z.looseObject({ type: z.string(), text: z.string().optional(), refusal: z.string().optional() })).min(1),
]);

const item: z.ZodType<Item> = z.union([
  z.looseObject({
    type: z.literal("message").optional(),
    role: z.enum(["user", "assistant", "system", "developer"]),
    content,
  }),
  z.looseObject({ type: z.literal("function_call"), call_id: callId, name: toolName, arguments: z.string() }),
  z.looseObject({ type: z.literal("function_call_output"), call_id: callId, output: content }),
  z.looseObject({ type: z.literal("reasoning") }),
]);

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  z.looseObject({ type: z.literal("function"), name: toolName }),
]);

const format = z.union([
  z.looseObject({ type: z.enum(["text", "json_object"]) }),
  z.looseObject({ type: z.literal("json_schema"), ...jsonFormat }),
]);

export const responseRequest: z.ZodType<ResponseBody> = z.looseObject({
  model: z.string().describe("As `GET /v1/models` names it."),
  input: z.union([z.string().min(1), z.array(item).min(1)]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().max(1000).nullish(),
  store: z.boolean().nullish().describe("Keep a session that nobody named. Default: true."),
  stream: z.boolean().nullish(),
  tools: z
    .array(z.looseObject({ type: z.literal("function", "Only function tools are passed on."), ...functionFields }))
    .max(128)
    .nullish(),
  tool_choice: toolChoice.nullish(),
  text: z.looseObject({ format: format.nullish() }).nullish(),
  max_output_tokens: tokenCount,
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  prompt_cache_key: z.string().max(200).nullish().describe("As X-Session-Key."),
  background: only(false),
  parallel_tool_calls: only(true),
  conversation: absent,
  prompt: absent,
});

const textTypes: ReadonlySet<string> = new Set(["input_text", "output_text", "text"]);

function textOf(value: Content, param: string): string {
  if (typeof value === "string") return value;
  return value
    .map(({ type, text, refusal }, index) => {
      if (textTypes.has(type) && text !== undefined) return text;
      if (type === "refusal" && refusal !== undefined) return refusal;
      throw unfit(`${param}[${index}]`, `Only text can be said here, not ${JSON.stringify(type.slice(0, 60))}.`);
    })
    .join("");
}

/** Calls stand beside the assistant's message that makes them, as items of their own: they are one message here. */
function withCall(said: Said[], call: SaidCall): void {
  const last = said.at(-1);
  if (last?.role === "assistant") said[said.length - 1] = { ...last, calls: [...last.calls, call] };
  else said.push({ role: "assistant", text: "", calls: [call] });
}

/** The input of a request as a conversation; throws what does not fit. */
export function conversationOfInput({ input, instructions }: ResponseBody): Conversation {
  const told = instructions ? [instructions] : [];
  const said: Said[] = [];
  const items = typeof input === "string" ? [{ role: "user" as const, content: input }] : input;
  for (const [index, one] of items.entries()) {
    const param = `input[${index}]`;
    if ("role" in one) {
      const text = textOf(one.content, `${param}.content`);
      if (one.role === "user") said.push({ role: "user", text });
      else if (one.role === "assistant") said.push({ role: "assistant", text, calls: [] });
      else told.push(text);
    } else if (one.type === "function_call")
      withCall(said, { callId: one.call_id, name: one.name, inputText: one.arguments });
    else if (one.type === "function_call_output")
      said.push({ role: "tool", callId: one.call_id, output: textOf(one.output, `${param}.output`) });
  }
  return { instructions: told.length > 0 ? told.join("\n\n") : undefined, said };
}

export function callersToolsOfResponse({ tools }: ResponseBody): readonly CallerTool[] {
  return (tools ?? []).map(({ name, description, parameters }) => ({
    name,
    ...(description ? { description } : {}),
    ...(parameters ? { inputSchema: parameters } : {}),
  }));
}

export function modelSettingsOfResponse(body: ResponseBody): ModelSettings {
  const { max_output_tokens: maxOutputTokens, temperature, top_p: topP, tool_choice: choice } = body;
  const wanted = body.text?.format;
  const asked =
    typeof choice === "string" ? { type: choice } : choice && { type: "tool" as const, toolName: choice.name };
  return {
    ...(wanted?.type === "json_schema" ? jsonFormatOf(wanted) : {}),
    ...(wanted?.type === "json_object" ? { responseFormat: { type: "json" as const } } : {}),
    ...(asked ? { toolChoice: asked } : {}),
    ...(maxOutputTokens ? { maxOutputTokens } : {}),
    ...(typeof temperature === "number" ? { temperature } : {}),
    ...(typeof topP === "number" ? { topP } : {}),
  };
}
