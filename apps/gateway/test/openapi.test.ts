import { expect, it } from "vitest";
import { openGateway } from "./inside/open-gateway.ts";

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, { readonly operationId: string; readonly responses: object }>>;
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
    ],
    requestBody: {
      content: { "application/json": { schema: { type: "object", required: ["input"], additionalProperties: false } } },
    },
    responses: { 200: {}, 401: {}, 409: {}, 429: {} },
  });
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
});
