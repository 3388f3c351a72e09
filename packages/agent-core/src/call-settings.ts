import type { LanguageModelV3CallOptions } from "@ai-sdk/provider";
import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { CacheConversation } from "@turnkeeper/models";
import type { JsonValue } from "@turnkeeper/state-store";
import type { ToolSet } from "./tool-input.ts";
import { toolSet } from "./tool-input.ts";
import type { AnyTool, StandardSchema } from "./tool.ts";

/** How the model is to answer, as the AI SDK's provider interface names it; a model ignores what it does not know. */
export type ModelSettings = Pick<
  LanguageModelV3CallOptions,
  | "maxOutputTokens"
  | "temperature"
  | "topP"
  | "stopSequences"
  | "presencePenalty"
  | "frequencyPenalty"
  | "seed"
  | "responseFormat"
  | "toolChoice"
>;

/** A tool that whoever called runs: the turn is suspended over its calls until each is answered with its result. */
export interface CallerTool {
  /** `^[a-zA-Z0-9_-]{1,64}$`, and no tool of the agent. */
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the input; the caller checks it, not the agent. Default: any object. */
  readonly inputSchema?: Record<string, unknown>;
}

/**
 * What the turn of one call is asked with beside what its agent has: plain JSON, stored with the input, so that whoever
 * runs it asks it so.
 */
export interface CallSettings {
  /** Told to the model behind the agent's own `system`. */
  readonly instructions?: string;
  /** Tools that the caller runs. */
  readonly tools?: readonly CallerTool[];
  /**
   * How long the results of such calls are waited for, in milliseconds, over processes; then the turn is stopped as
   * `deadline`, and the calls count as not run. Default: ten minutes.
   */
  readonly resultWaitMs?: number;
  /**
   * Passed on with each request to the model. With `maxOutputTokens` an answer that is cut there is not gone on with;
   * a `toolChoice` that forces a call holds for the first request alone.
   */
  readonly model?: ModelSettings;
  /** The `traceparent` of whoever asks (W3C Trace Context): observers are told it with `turn.started`. */
  readonly traceParent?: string;
  /** As `conversationOf` of the agent's options, which it goes before. */
  readonly conversation?: CacheConversation["declared"];
}

/** What is stored of a call with its input. */
export interface StoredSettings extends CallSettings {
  /** What becomes of calls that ask for approval, where nobody calls any more; that all are allowed is never stored. */
  readonly approval?: "ask" | "deny";
}

/**
 * Settings as they are stored with their input. Throws `OPTION_INVALID` for what is no JSON, `INPUT_TOO_LARGE` for more
 * than `bytesMax` of it.
 */
export function storedSettings(settings: StoredSettings, bytesMax: number): JsonValue {
  let text: string;
  try {
    text = JSON.stringify(settings);
  } catch (error) {
    throw new CodedError("OPTION_INVALID", `Run option settings: expected plain JSON: ${messageOf(error)}.`, {
      context: { option: "settings" },
      cause: error,
    });
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax)
    throw new CodedError(
      "INPUT_TOO_LARGE",
      `The settings of the message (instructions, tools, model) have ${bytes} bytes; at most ${bytesMax} are taken. Describe the tools more briefly.`,
      { context: { bytes, bytesMax } },
    );
  return JSON.parse(text) as JsonValue;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The settings of an input; throws `SETTINGS_INVALID` for what no agent has stored, as an import may bring it. */
export function settingsOf(stored: JsonValue | undefined): StoredSettings {
  if (stored === undefined) return {};
  const {
    instructions = "",
    tools = [],
    model = {},
    conversation = {},
    approval = "deny",
    resultWaitMs = 0,
  } = isObject(stored) ? stored : { model: null };
  const areTools = Array.isArray(tools) && tools.every((tool) => isObject(tool) && typeof tool["name"] === "string");
  const isApproval = approval === "ask" || approval === "deny";
  const isWait = typeof resultWaitMs === "number";
  if (typeof instructions === "string" && areTools && isObject(model) && isObject(conversation) && isApproval && isWait)
    return stored as StoredSettings;
  throw new CodedError("SETTINGS_INVALID", "What is stored of how to run this input is not what an agent stores.");
}

/** Of the settings of an input, whatever they are: whose trace its turn belongs to. */
export function traceParentOf(stored: JsonValue | undefined): string | undefined {
  const traceParent = isObject(stored) ? stored["traceParent"] : undefined;
  return typeof traceParent === "string" ? traceParent : undefined;
}

/** What a caller's tool takes is the caller's to check. */
const anyInput: StandardSchema = {
  "~standard": { version: 1, vendor: "turnkeeper", validate: (value) => ({ value }) },
};

const callerTools = new WeakSet<AnyTool>();

/** Whether the calls of a tool are the caller's to run. */
export const isCallersTool = (tool: AnyTool): boolean => callerTools.has(tool);

function asTool({ name, description = "", inputSchema = { type: "object" } }: CallerTool): AnyTool {
  const tool: AnyTool = {
    name,
    description,
    input: anyInput,
    jsonSchema: inputSchema,
    execute: () => Promise.reject(new Error("The caller did not send a result of this call.")),
  };
  callerTools.add(tool);
  return tool;
}

/** The agent's tools and, behind them, the caller's. Throws `TOOL_DUPLICATE`. */
export function withCallersTools(tools: ToolSet, callers: readonly CallerTool[] = []): ToolSet {
  return callers.length === 0 ? tools : toolSet([...tools.values(), ...callers.map(asTool)]);
}
