import { fastify } from "fastify";
import { expect, it } from "vitest";
import { logOptions } from "../src/log-options.ts";

it("a log line has no headers and no token, whoever writes it, and an error only by name, code, message and stack", async () => {
  const lines: string[] = [];
  await using server = fastify({ logger: logOptions({ level: "debug", write: (line) => lines.push(line) }) });
  const canary = "canary-5f2a";
  const headers = { authorization: `Bearer ${canary}`, cookie: `a=${canary}` };
  server.log.info({ request: { headers, method: "GET" }, sent: { authorization: canary, token: canary } }, "noted");
  server.log.child({}, { serializers: { req: (req: unknown) => req } }).info({ req: { headers } }, "noted too");
  const error = Object.assign(new Error("no answer", { cause: new Error("ECONNRESET") }), { response: { headers } });
  server.log.error({ err: error }, "failed");
  const log = lines.join("");
  expect(log).not.toContain(canary);
  expect(log).toContain("no answer <- ECONNRESET");
  expect(lines).toHaveLength(3);
  expect(log).toContain('"method":"GET"');
});
