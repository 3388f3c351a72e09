import { expect, it } from "vitest";
import { openGateway } from "./inside/open-gateway.ts";

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly in: string; readonly name: string }[];
  readonly responses: object;
}

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
}

it("the OpenAPI document names every route, its parameters, its answers and its refusals", async () => {
  const { url } = await openGateway([]);
  const response = await fetch(`${url}/openapi.json`);
  const document = (await response.json()) as Document;
  expect(document.openapi).toBe("3.1.0");
  expect(Object.keys(document.paths)).toEqual(
    expect.arrayContaining(["/v1/sessions", "/v1/sessions/{sessionId}", "/v1/sessions/{sessionId}/turns", "/healthz"]),
  );
  expect(document.paths["/v1/sessions/{sessionId}/turns"]?.["post"]).toMatchObject({
    operationId: "runTurn",
    parameters: [
      {
        name: "sessionId",
        in: "path",
        required: true,
        schema: { type: "string", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" },
      },
      { name: "X-Session-Key", in: "header", schema: { type: "string" } },
    ],
    requestBody: {
      content: { "application/json": { schema: { type: "object", required: ["input"], additionalProperties: false } } },
    },
    responses: { 200: {}, 401: {}, 409: {}, 413: {}, 415: {}, 429: {} },
  });
  expect(document.paths["/v1/sessions/{sessionId}/stop"]?.["post"]?.responses).toMatchObject({ 413: {}, 415: {} });
  const headersOf = (path: string, method: string): readonly unknown[] =>
    (document.paths[path]?.[method]?.parameters ?? []).flatMap((one) => (one.in === "header" ? [one.name] : []));
  expect(headersOf("/v1/sessions/{sessionId}/events", "get")).toEqual(["Last-Event-ID"]);
  for (const path of ["/v1/chat/completions", "/v1/responses"])
    expect(headersOf(path, "post")).toEqual(
      expect.arrayContaining(["X-Session-Id", "X-Session-Key", "Idempotency-Key"]),
    );
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
});
