import { z } from "zod";
import { resolveOptions } from "../options.ts";

/** How one server is reached: a program that speaks on its stdin and stdout, or an address. */
export interface McpServerOptions {
  readonly command?: string | undefined;
  readonly args?: readonly string[] | undefined;
  /** Variables of the program's environment, beside the built-in list (PATH, HOME, locale, …). */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Names of variables that the program gets from the environment it is started from. */
  readonly passEnvironment?: readonly string[] | undefined;
  /** The folder the program starts in. Default: that of this process. */
  readonly folder?: string | undefined;
  readonly url?: string | undefined;
  /** Headers of each request, for instance `Authorization`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** How long the server may take to start and name its tools. Default 30,000: some are installed at their first start. */
  readonly startTimeoutMs?: number | undefined;
  /** How long one call may take without a sign of progress. Default 120,000. */
  readonly callTimeoutMs?: number | undefined;
  /** How much of an answer is kept, in bytes. Default 65,536: some 16,000 tokens. */
  readonly answerBytesMax?: number | undefined;
}

type Optional = "command" | "folder" | "url";

export type ResolvedMcpServerOptions = Readonly<
  Pick<McpServerOptions, Optional> & {
    [Name in Exclude<keyof McpServerOptions, Optional>]-?: NonNullable<McpServerOptions[Name]>;
  }
>;

const texts = z.record(z.string().min(1), z.string());

const optionsSchema: z.ZodType<ResolvedMcpServerOptions> = z
  .strictObject({
    command: z.string().min(1).optional(),
    args: z.array(z.string()).readonly().default([]),
    env: texts.default({}),
    passEnvironment: z.array(z.string().min(1)).readonly().default([]),
    folder: z.string().min(1).optional(),
    url: z.url({ protocol: /^https?$/ }).optional(),
    headers: texts.default({}),
    startTimeoutMs: z.number().positive().max(600_000).default(30_000),
    callTimeoutMs: z.number().positive().max(86_400_000).default(120_000),
    answerBytesMax: z.int().min(256).max(16_777_216).default(65_536),
  })
  .refine(({ command, url }) => (command === undefined) !== (url === undefined), {
    message: "expected a command or a url, and not both",
  });

/** Throws `OPTION_INVALID`. */
export function resolveServerOptions(name: string, options: McpServerOptions): ResolvedMcpServerOptions {
  return resolveOptions(`connectMcpServers: server ${JSON.stringify(name)}`, optionsSchema, options);
}
