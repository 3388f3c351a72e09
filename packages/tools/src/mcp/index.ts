export { connectMcpServers } from "./mcp-servers.ts";
export type { McpDeps, McpFailure, McpServers } from "./mcp-servers.ts";
export type { McpServerOptions } from "./server-options.ts";
