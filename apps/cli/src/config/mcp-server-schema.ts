import { z } from "zod";
import type { McpServerConfig } from "./config.ts";
import { seconds } from "./seconds.ts";

/** As the package has it: 1 to 32 letters, digits, dashes and single underscores. */
const serverNamePattern = /^(?!.*__)[a-zA-Z0-9][a-zA-Z0-9_-]{0,31}$/;
const texts = z.record(z.string().min(1), z.string());
const mcpServer: z.ZodType<McpServerConfig> = z
  .strictObject({
    command: z.string().min(1).optional().describe("The program to start; it speaks on its stdin and stdout."),
    args: z.array(z.string()).optional(),
    env: texts.optional().describe("Variables of its environment; it gets no key of ours."),
    pass_environment: z.array(z.string().min(1)).optional().describe("Names of our variables that it gets."),
    folder: z.string().min(1).optional().describe("Where it starts. Default: the workspace."),
    url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe("The address of a server over HTTP, in place of a command."),
    headers: texts.optional(),
    token_env: z.string().min(1).optional().describe("Name of the variable that holds its bearer token."),
    start_timeout_s: seconds().max(600).optional().describe("How long it may take to start. Default 30."),
    timeout_s: seconds().max(86_400).optional().describe("The longest one call may be silent. Default 120."),
  })
  .refine(({ command, url }) => (command === undefined) !== (url === undefined), {
    message: "expected a command or a url, and not both",
  });

/** The MCP servers of a config.yaml, by name. */
export const mcpServers: z.ZodType<Readonly<Record<string, McpServerConfig>>> = z.record(
  z.string().regex(serverNamePattern, "expected a name of 1 to 32 letters, digits, - and single _"),
  mcpServer,
);
