import path from "node:path";
import type { AnyTool } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import type { ApprovalPolicy } from "@turnkeeper/tools";
import type { McpServerOptions } from "@turnkeeper/tools/mcp";
import type { CommandContext } from "./command-context.ts";
import { complain } from "./command-io.ts";
import type { CommandIo } from "./command-io.ts";
import type { Config, McpServerConfig } from "./config/config.ts";
import { printable } from "./display/style.ts";
import { workingFolderOf } from "./places.ts";
import { socketFolderOf } from "./store-location.ts";

/** The tools that the model is offered, the rules for them, and what stands behind them. */
export interface ToolSet {
  readonly tools: readonly AnyTool[];
  readonly policy: ApprovalPolicy;
  /** Ends the servers. */
  close(): Promise<void>;
}

/** Who writes the messages: somebody at this machine, or whoever reaches the gateway. */
export type Audience = "terminal" | "http";

/** Whether sessions over HTTP have the tool: they have none that was not named for them. */
function isForHttp(name: string, { gateway }: Config): boolean {
  return gateway.tools.some((pattern) => {
    // Letters, digits, `_`, `-` and `*` are all that a pattern has.
    return new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);
  });
}

/** Starts the MCP servers, where there are any, and tells of those that do not start. */
export async function openToolSet(
  io: CommandIo,
  context: CommandContext,
  { audience, stop }: { readonly audience: Audience; readonly stop?: AbortSignal | undefined },
): Promise<ToolSet> {
  const { approvalPolicy, builtinTools } = await import("@turnkeeper/tools");
  const { tools } = context.config;
  // A tool that opened the store's file would cancel SQLite's locks on it in this process.
  const forbiddenPaths = [
    `${context.store.path}*`,
    path.resolve(context.loaded.file),
    socketFolderOf(context.store.path),
  ];
  const all = builtinTools(
    { host: systemHost, environment: io.environment },
    {
      shell: { timeoutMs: tools.shell.timeout_s * 1000 },
      files: { forbiddenPaths },
      fetchUrl: { timeoutMs: tools.fetch_url.timeout_s * 1000, allowHosts: tools.fetch_url.allow_hosts },
    },
  );
  const enabled = new Set<string>(tools.enabled);
  const policy = approvalPolicy(tools.approval);
  const isOffered = ({ name }: AnyTool): boolean => audience === "terminal" || isForHttp(name, context.config);
  const mayHaveServers =
    audience === "terminal" || context.config.gateway.tools.some((name) => name.startsWith("mcp__"));
  const servers = mayHaveServers ? await startServers(io, context, stop) : noServers;
  const offered = [...all.filter(({ name }) => enabled.has(name)), ...servers.tools].filter(isOffered);
  return {
    policy,
    tools: offered,
    close: () => servers.close(),
  };
}

const noServers: Pick<ToolSet, "tools" | "close"> = { tools: [], close: () => Promise.resolve() };

/** So long nobody wonders why nothing happens. */
const quietMs = 2_000;

async function startServers(
  io: CommandIo,
  { config }: CommandContext,
  stop: AbortSignal | undefined,
): Promise<Pick<ToolSet, "tools" | "close">> {
  const configured = Object.entries(config.mcp_servers);
  if (configured.length === 0) return noServers;
  const { connectMcpServers } = await import("@turnkeeper/tools/mcp");
  const starting = new Set(configured.map(([name]) => name));
  const cancel = systemHost.timers.after(quietMs, () => {
    complain(io, `Waiting for MCP servers to start: ${printable([...starting].join(", "))}.`);
  });
  const servers = await connectMcpServers(
    { host: systemHost, environment: io.environment, stop, onSettled: (name) => void starting.delete(name) },
    Object.fromEntries(configured.map(([name, server]) => [name, serverOptionsOf(server, io)])),
  ).finally(cancel);
  for (const { server, message } of servers.failures)
    complain(io, `MCP server ${printable(server)}: ${printable(message)}`);
  return servers;
}

/** The configuration in the package's own words; a token comes from the environment, so that no file holds it. */
function serverOptionsOf(server: McpServerConfig, io: CommandIo): McpServerOptions {
  const { start_timeout_s, timeout_s, pass_environment, token_env, headers = {}, ...rest } = server;
  const token = token_env === undefined ? undefined : io.environment[token_env];
  return {
    ...rest,
    folder: server.folder ?? workingFolderOf(io),
    headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
    passEnvironment: pass_environment,
    startTimeoutMs: start_timeout_s === undefined ? undefined : start_timeout_s * 1000,
    callTimeoutMs: timeout_s === undefined ? undefined : timeout_s * 1000,
  };
}
