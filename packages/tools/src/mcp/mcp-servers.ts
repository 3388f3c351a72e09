import type { Tool } from "@modelcontextprotocol/sdk/types.js";
import type { AnyTool, StandardSchema, ToolContext } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { Environment } from "../child-environment.ts";
import { throwIfInterrupted, toolError } from "../errors.ts";
import { answerText } from "./call-answer.ts";
import { ServerConnection } from "./server-connection.ts";
import { saidText } from "./server-failure.ts";
import { resolveServerOptions } from "./server-options.ts";
import type { McpServerOptions, ResolvedMcpServerOptions } from "./server-options.ts";
import { ToolNames } from "./tool-names.ts";

export interface McpDeps {
  readonly host: Host;
  /** What servers get a part of: `process.env` of an app. */
  readonly environment: Environment;
  /** Ends the start: what has started is closed, and the call rejects with `CALL_INTERRUPTED`. */
  readonly stop?: AbortSignal | undefined;
  /** Told as each server has started, or will not: for who shows whom the others wait for. */
  readonly onSettled?: ((server: string) => void) | undefined;
}

/** A server, or one of its tools, that cannot be used; the others can. */
export interface McpFailure {
  readonly server: string;
  readonly message: string;
}

export interface McpServers extends AsyncDisposable {
  /** The tools of all servers that started, named `mcp__SERVER__TOOL`. */
  readonly tools: readonly AnyTool[];
  readonly failures: readonly McpFailure[];
  /** Ends all servers and what they started; safe to repeat. */
  close(): Promise<void>;
}

const serverNamePattern = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,31}$/;
// A model that is offered more than this finds none of them.
const toolsOfServerMax = 256;
const faultsToldMax = 4;
const descriptionCharactersMax = 4_096;
const schemaCharactersMax = 65_536;
const marginMs = 10_000;

/**
 * Starts MCP servers, all at once and each within its bound, and makes their tools ours.
 *
 * A server that does not start within its bound is a failure, and the others are there; one that dies is started again by
 * the next call, after a pause that doubles with each failure. A stop of the turn is handed on to the server. What servers say of
 * their tools is not trusted: every call needs approval. Throws `OPTION_INVALID`; calls reject with `MCP_UNAVAILABLE`,
 * `MCP_FAILED`, `CALL_INTERRUPTED`.
 */
export async function connectMcpServers(
  deps: McpDeps,
  servers: Readonly<Record<string, McpServerOptions>>,
): Promise<McpServers> {
  const resolved = Object.entries(servers).map(([name, options]) => {
    if (!serverNamePattern.test(name) || name.includes("__")) {
      const expected = "1 to 32 letters, digits, - and _, without __";
      throw toolError(
        "OPTION_INVALID",
        `connectMcpServers: server name: expected ${expected}, got ${JSON.stringify(name)}.`,
      );
    }
    return { name, options: resolveServerOptions(name, options) };
  });
  const started = await Promise.all(
    resolved.map(async ({ name, options }) => {
      const connection = new ServerConnection(deps, name, options);
      try {
        const { tools, faults } = await connection.listTools(deps.stop);
        return { connection, options, tools, faults };
      } catch (error) {
        const faults = [
          CodedError.is(error)
            ? error.message
            : `The MCP server ${JSON.stringify(name)} cannot be used: ${saidText(error)}`,
        ];
        return { connection, options, tools: [], faults };
      } finally {
        deps.onSettled?.(name);
      }
    }),
  );
  const close = async (): Promise<void> => {
    await Promise.all(started.map(({ connection }) => connection.close()));
  };
  if (deps.stop?.aborted === true) {
    await close();
    throw toolError("CALL_INTERRUPTED", "The MCP servers were stopped before all had started.");
  }
  const names = new ToolNames();
  const failures: McpFailure[] = [];
  const tools: AnyTool[] = [];
  for (const { connection, options, tools: offered, faults } of started) {
    const { name } = connection;
    for (const message of faults.slice(0, faultsToldMax)) failures.push({ server: name, message });
    if (faults.length > faultsToldMax)
      failures.push({ server: name, message: `Another ${faults.length - faultsToldMax} of its tools are left out.` });
    for (const tool of offered.slice(0, toolsOfServerMax)) {
      if (JSON.stringify(tool.inputSchema).length > schemaCharactersMax) {
        failures.push({
          server: name,
          message: `The schema of its tool ${JSON.stringify(tool.name.slice(0, 64))} is too large.`,
        });
      } else tools.push(toolOf(connection, options, names.give(name, tool.name), tool));
    }
    if (offered.length > toolsOfServerMax) {
      failures.push({
        server: name,
        message: `Of its ${offered.length} tools the first ${toolsOfServerMax} are offered.`,
      });
    }
  }
  return { tools, failures, close, [Symbol.asyncDispose]: close };
}

type Arguments = Readonly<Record<string, unknown>>;

function toolOf(
  connection: ServerConnection,
  { callTimeoutMs, startTimeoutMs, answerBytesMax }: ResolvedMcpServerOptions,
  name: string,
  tool: Tool,
): AnyTool {
  return Object.freeze({
    name,
    description: (tool.description ?? tool.title ?? tool.name).slice(0, descriptionCharactersMax),
    input: argumentsSchema(tool.inputSchema),
    needsApproval: true,
    boundMs: startTimeoutMs + callTimeoutMs + marginMs,
    async execute(input: Arguments, context: ToolContext) {
      throwIfInterrupted(context.signal, `call ${name}`);
      const result = await connection.call({
        name: tool.name,
        input,
        signal: context.signal,
        onProgress: () => context.progress("progress"),
      });
      const text = answerText(result, answerBytesMax);
      if (result.isError === true) throw toolError("MCP_FAILED", text);
      return text;
    },
  });
}

/** The server checks its arguments itself; here they must only be an object. */
function argumentsSchema(inputSchema: Tool["inputSchema"]): StandardSchema<Arguments> {
  return {
    "~standard": {
      version: 1,
      vendor: "turnkeeper",
      validate: (value) =>
        typeof value === "object" && value !== null && !Array.isArray(value)
          ? { value: value as Arguments }
          : { issues: [{ message: "Expected an object." }] },
      jsonSchema: { input: () => inputSchema },
    },
  };
}
