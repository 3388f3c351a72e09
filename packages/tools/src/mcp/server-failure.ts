import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { messageOf } from "@turnkeeper/kernel";
import type { ResolvedMcpServerOptions } from "./server-options.ts";

/** Whether the server ended while it was asked, in the SDK's words. */
export function isConnectionClosed(error: unknown): boolean {
  // The SDK has no enum type that a number compares with.
  return error instanceof McpError && error.code === Number(ErrorCode.ConnectionClosed);
}

/** The system's code of an error, wherever in its causes it stands. */
function systemCodeOf(error: unknown): string | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    if ("code" in one && typeof one.code === "string" && /^E[A-Z]/.test(one.code)) return one.code;
  }
  return undefined;
}

interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** What of an answer is not as the protocol wants it; the first of it tells enough. */
export function faultText({ issues }: { readonly issues: readonly Fault[] }): string {
  const [first] = issues;
  const place = first?.path.map(String).join(".") ?? "";
  return place === "" ? (first?.message ?? "") : `${place}: ${first?.message ?? ""}`;
}

/** The SDK's words for a failure, without its own and our prefixes; an answer that is none, in one line. */
export function saidText(error: unknown): string {
  if (error instanceof Error && "issues" in error && Array.isArray(error.issues))
    return `Its answer is not as the protocol wants it (${faultText(error as Error & { readonly issues: readonly Fault[] })}).`;
  return messageOf(error).replace(/^MCP error -?\d+: (?:CodedError: )?/, "");
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

type Address = Pick<ResolvedMcpServerOptions, "command" | "folder" | "url">;

function causeText(cause: unknown, { command, folder, url }: Address): string {
  const code = systemCodeOf(cause);
  if (isConnectionClosed(cause)) return "It ended before it had started";
  if (command !== undefined && code === "ENOENT") {
    const where = folder === undefined ? "" : `, or its folder ${JSON.stringify(folder)}`;
    return `Its command ${JSON.stringify(command)} does not exist${where}; check its settings`;
  }
  if (command !== undefined && code === "EACCES") return `Its command ${JSON.stringify(command)} may not be run`;
  // A fetch that was not answered says why in its cause.
  const why = code ?? (cause instanceof TypeError && cause.cause instanceof Error ? cause.cause.message : undefined);
  if (url !== undefined && why !== undefined) {
    return `It could not be reached at ${new URL(url).host} (${why}); check that it runs, and its url`;
  }
  return saidText(cause);
}

/** Why a server cannot be used, in whole sentences; `said` is what it last wrote to its standard error. */
export function failureText(cause: unknown, said: string, address: Address): string {
  const told = sentence(causeText(cause, address));
  return said === "" ? told : `${told} It said: ${sentence(said)}`;
}
