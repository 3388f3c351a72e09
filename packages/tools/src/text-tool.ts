import type { ToolContext, ToolDefinition } from "@turnkeeper/agent-core";

/** A tool that answers text, as all tools of this package do. */
export interface TextTool<Input> extends ToolDefinition<Input> {
  execute(input: Input, context: ToolContext): Promise<string>;
}
