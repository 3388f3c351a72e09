export { defineTool } from "./tool.ts";
export type { AnyTool, SchemaResult, StandardSchema, ToolContext, ToolDefinition } from "./tool.ts";
export type { HolderView, RunOutcome, TurnEvent, TurnEventBody, TurnFinished } from "./events.ts";
