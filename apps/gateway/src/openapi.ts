import { z } from "zod";
import { problemSchema } from "./route.ts";
import type { Route, RouteAnswer } from "./route.ts";

type Json = Record<string, unknown>;

/** OpenAPI 3.1 speaks JSON Schema 2020-12 itself, so a zod schema needs no translation but the dialect's name left out. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return json;
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

function parametersOf(schema: z.ZodType | undefined, place: "path" | "query"): readonly Json[] {
  if (!schema) return [];
  const { properties = {}, required = [] } = schemaOf(schema, "input") as ObjectSchema;
  return Object.entries(properties).map(([name, { description, ...inner }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: inner,
  }));
}

function headersOf(headers: Route["headers"] = {}): readonly Json[] {
  return Object.entries(headers).map(([name, description]) => ({
    name,
    in: "header",
    description,
    schema: { type: "string" },
  }));
}

function answerOf({ description, schema, contentType = "application/json" }: RouteAnswer): Json {
  if (!schema && contentType === "application/json") return { description };
  return { description, content: { [contentType]: { schema: schema ? schemaOf(schema, "output") : {} } } };
}

const refusalTexts: Readonly<Record<number, string>> = {
  400: "The request does not fit.",
  401: "The token is missing or wrong.",
  403: "The Host or the Origin is foreign.",
  404: "There is no such thing.",
  409: "Something is in the way.",
  410: "It was there once.",
  413: "It is too large.",
  415: "The media type is not JSON, or the body is encoded.",
  429: "Too much at once; see Retry-After.",
  503: "Draining, or the store refuses; see Retry-After.",
};
const everywhere = [400, 403, 503];
/** Of every route that may be sent a body, whether it reads one or not. */
const ofBodies = [413, 415];

const refusalContent: Json = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };

function operationOf(route: Route): Json {
  const refusals = [
    ...everywhere,
    ...(route.access === "open" ? [] : [401]),
    ...(route.method === "GET" ? [] : ofBodies),
    ...(route.refusals ?? []),
  ];
  const content = route.tellRefusal ? { "application/json": { schema: {} } } : refusalContent;
  const told = Object.fromEntries(
    [...new Set(refusals)]
      .toSorted((left, right) => left - right)
      .map((status) => [status, { description: refusalTexts[status] ?? "Refused.", content }]),
  );
  const answers = Object.entries(route.answers).map(([status, answer]) => [status, answerOf(answer)]);
  return {
    operationId: route.name,
    summary: route.summary,
    ...(route.access === "open" ? { security: [] } : {}),
    parameters: [
      ...parametersOf(route.params, "path"),
      ...parametersOf(route.query, "query"),
      ...headersOf(route.headers),
    ],
    ...(route.body
      ? { requestBody: { content: { "application/json": { schema: schemaOf(route.body, "input") } } } }
      : {}),
    responses: { ...Object.fromEntries(answers), ...told },
  };
}

/** The OpenAPI 3.1 document of the routes, made of the same schemas that check the requests. */
export function openApiDocument(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method.toLowerCase()] = operationOf(route);
  return {
    openapi: "3.1.0",
    info: {
      title: "Turnkeeper gateway",
      version,
      description:
        "Durable agent turns over HTTP and server-sent events. Errors are problems (RFC 9457) with a stable code.",
      license: { name: "MIT", identifier: "MIT" },
    },
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Problem: schemaOf(problemSchema, "output") },
    },
  };
}
