import type { LanguageModelV3CallOptions } from "@ai-sdk/provider";
import type { CacheConversation } from "@turnkeeper/models";
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

/** What the turn of one call is asked with beside what its agent has. */
export interface CallSettings {
  /** Told to the model behind the agent's own `system`. */
  readonly instructions?: string;
  /** Tools that the caller runs. */
  readonly tools?: readonly CallerTool[];
  /**
   * Passed on with each request to the model. With `maxOutputTokens` an answer that is cut there is not gone on with;
   * a `toolChoice` that forces a call holds for the first request alone.
   */
  readonly model?: ModelSettings;
  /** As `conversationOf` of the agent's options, which it goes before. */
  readonly conversation?: CacheConversation["declared"];
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
