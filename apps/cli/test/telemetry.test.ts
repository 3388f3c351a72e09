import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { makeHome } from "./outside/built-cli.ts";
import type { CliResult } from "./outside/built-cli.ts";
import { compatibleConfig, openAiCall, openAiText, serveModel } from "./outside/model-server.ts";
import { startGateway } from "./outside/started-gateway.ts";

interface SentSpan {
  readonly name: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

interface Collector {
  readonly url: string;
  /** Each body that came, as it came. */
  readonly bodies: string[];
  readonly paths: string[];
  readonly headers: (string | undefined)[];
}

let close = async (): Promise<void> => {};
afterEach(() => close());

/** Takes what an OTLP collector takes, as bytes on a socket. */
async function collect(): Promise<Collector> {
  const [bodies, paths, headers]: [string[], string[], (string | undefined)[]] = [[], [], []];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      bodies.push(Buffer.concat(chunks).toString("utf8"));
      paths.push(request.url ?? "");
      headers.push(request.headers.authorization);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  close = () => new Promise((resolve) => server.close(() => resolve()));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, paths, headers };
}

/** One turn at a gateway that is then asked to end. */
async function turnAt(config: string, env: Readonly<Record<string, string>> = {}): Promise<CliResult> {
  const { process: gateway, url } = await startGateway({ home: makeHome(config), env });
  const response = await fetch(`${url}/v1/sessions/s/turns`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input: "secret question" }),
  });
  expect(await response.json()).toMatchObject({ outcome: "answered" });
  gateway.child.kill("SIGTERM");
  return gateway.ended;
}

it("a gateway sends its turns as spans to the collector it is told of, and nothing of what was said", async () => {
  const collector = await collect();
  const model = await serveModel(openAiCall("nothing", '{"secret":1}'), openAiText("secret answer"));
  const telemetry = `telemetry: { otlp_endpoint: "${collector.url}/" }\n`;
  const env = { OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20of-the-collector" };
  expect(await turnAt(compatibleConfig(model, telemetry), env)).toMatchObject({ code: 0 });
  expect(collector.paths).toEqual(["/v1/traces"]);
  expect(collector.headers).toEqual(["Bearer of-the-collector"]);
  const [body = ""] = collector.bodies;
  const sent = JSON.parse(body) as { resourceSpans: { resource: unknown; scopeSpans: { spans: SentSpan[] }[] }[] };
  const spans = sent.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans: ofScope }) => ofScope));
  const [turn] = spans.filter(({ name }) => name === "invoke_agent turnkeeper");
  const rest = spans.filter((span) => span !== turn);
  expect(rest.map(({ name }) => name)).toEqual(["chat test", "execute_tool nothing", "chat test"]);
  for (const { parentSpanId } of rest) expect(parentSpanId).toBe(turn?.spanId);
  const facts = Object.fromEntries(turn?.attributes.map(({ key, value }) => [key, Object.values(value)[0]]) ?? []);
  expect(facts).toMatchObject({
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.conversation.id": "s",
    "turnkeeper.session_id": "s",
    "turnkeeper.fencing_token": 1,
    "turnkeeper.outcome": "answered",
    "gen_ai.usage.input_tokens": 22,
  });
  expect(JSON.stringify(sent.resourceSpans[0]?.resource)).toContain('"turnkeeper"');
  expect(body).not.toMatch(/secret/);
});

it("a collector that is away harms no turn, is told once, and holds up no shutdown", async () => {
  const model = await serveModel(openAiText("Hello."));
  const ended = await turnAt(compatibleConfig(model, 'telemetry: { otlp_endpoint: "http://127.0.0.1:9" }\n'));
  expect(ended).toMatchObject({ code: 0 });
  expect(ended.stderr.match(/Spans could not be sent/g)).toHaveLength(1);
});
