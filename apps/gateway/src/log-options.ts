import { CodedError } from "@turnkeeper/kernel";
import type { FastifyServerOptions } from "fastify";
import type { LogOptions } from "./gateway-options.ts";

/** Whoever logs a request, or what was made of its head, logs neither its headers nor a token. */
const redactedPaths = ["req.headers", "request.headers", "*.authorization", "*.token"];

/** An error with its causes, by name, code, message and stack; nothing else that hangs on it. */
function serializedError(error: unknown): { type: string; message: string; stack: string; code?: string } {
  const causes: Error[] = [];
  for (let one: unknown = error; one instanceof Error && causes.length < 4; one = one.cause) causes.push(one);
  const [first] = causes;
  return {
    type: first?.name ?? typeof error,
    ...(CodedError.is(first) ? { code: first.code } : {}),
    message: causes.map(({ message }) => message).join(" <- "),
    stack: first?.stack ?? "",
  };
}

/** How the server logs: as the framework does, without what is nobody's business. */
export function logOptions(
  log: LogOptions | undefined,
): false | Exclude<FastifyServerOptions["logger"], boolean | undefined> {
  if (log === undefined) return false;
  return {
    level: log.level,
    stream: { write: (line: string) => log.write(line) },
    redact: redactedPaths,
    serializers: { err: serializedError },
  };
}
