import type { LanguageModelV3FunctionTool } from "@ai-sdk/provider";
import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { JsonValue } from "@turnkeeper/state-store";
import type { AnyTool, StandardSchema } from "./tool.ts";

/** Tools by name: a Map, because a plain object would answer to `constructor`. */
export type ToolSet = ReadonlyMap<string, AnyTool>;

export function toolSet(tools: readonly AnyTool[]): ToolSet {
  const byName = new Map<string, AnyTool>();
  for (const tool of tools) {
    if (byName.has(tool.name))
      throw new CodedError(
        "TOOL_DUPLICATE",
        `Two tools are named ${tool.name}; every tool of an agent needs its own name.`,
      );
    byName.set(tool.name, tool);
  }
  return byName;
}

/** The tool as a provider is told of it. */
export function declarationOf(tool: AnyTool): LanguageModelV3FunctionTool {
  const schema = tool.jsonSchema ?? tool.input["~standard"].jsonSchema?.input({ target: "draft-07" });
  if (!schema) {
    throw new CodedError(
      "TOOL_SCHEMA",
      `Tool ${tool.name}: its ${tool.input["~standard"].vendor} schema gives no JSON Schema; pass one as jsonSchema.`,
    );
  }
  return {
    type: "function",
    name: tool.name,
    description: tool.description,
    inputSchema: schema as LanguageModelV3FunctionTool["inputSchema"],
  };
}

/** Arguments as the transcript keeps them, and, where they fit the tool, as the tool takes them. */
export type ParsedArguments =
  | { readonly kind: "valid"; readonly stored: JsonValue; readonly value: unknown }
  | { readonly kind: "invalid"; readonly stored: JsonValue; readonly message: string };

const keptMalformedLength = 2000;
const keptMessageLength = 1000;

type JsonObject = { readonly [key: string]: JsonValue };

/** The one object that a call's arguments are, or what is wrong with them. */
export function parseObject(text: string): { readonly value: JsonObject } | { readonly error: string } {
  // Some providers send nothing at all, or `null`, for a call without arguments.
  if (text.trim() === "" || text.trim() === "null") return { value: {} };
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    return { error: `not valid JSON (${messageOf(error)})` };
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value: value as JsonObject };
  return { error: "not a JSON object" };
}

/** A quotation of what a model sent, that its length cannot hurt anybody with. */
function clipped(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length).toWellFormed()}…` : text;
}

function pathOf(path: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined): string {
  const keys = (path ?? []).map((one) => String(typeof one === "object" ? one.key : one));
  return keys.length > 0 ? `${keys.join(".")}: ` : "";
}

async function check(
  schema: StandardSchema,
  value: JsonValue,
): Promise<{ readonly value: unknown } | { readonly message: string }> {
  const result = await schema["~standard"].validate(value);
  if (!result.issues) return { value: result.value };
  return { message: result.issues.map((issue) => `${pathOf(issue.path)}${issue.message}`).join("; ") };
}

/**
 * Checks what a model sent as arguments. What is stored is always a JSON object: anything else some provider refuses on
 * the next request, and the session would be unusable for good.
 */
export async function parseArguments(tool: AnyTool, text: string): Promise<ParsedArguments> {
  const parsed = parseObject(text);
  if ("error" in parsed) {
    return {
      kind: "invalid",
      stored: { malformed_arguments: clipped(text.toWellFormed(), keptMalformedLength) },
      message: `The arguments of ${tool.name} are ${clipped(parsed.error, keptMessageLength)}. Send them again as one JSON object.`,
    };
  }
  const checked = await check(tool.input, parsed.value);
  if ("message" in checked) {
    return {
      kind: "invalid",
      stored: parsed.value,
      message: `The arguments of ${tool.name} do not fit: ${clipped(checked.message, keptMessageLength)}. Correct them and call it again.`,
    };
  }
  return { kind: "valid", stored: parsed.value, value: checked.value };
}
