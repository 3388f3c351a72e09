import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { Refusal } from "./refusal.ts";
import type { FieldProblem, Problem } from "./refusal.ts";

type Method = "GET" | "POST" | "DELETE";

/** One answer of a route, for the OpenAPI document. */
export interface RouteAnswer {
  readonly description: string;
  /** Absent: no body, or one that no schema describes. */
  readonly schema?: z.ZodType;
  /** Default `application/json`. */
  readonly contentType?: string;
}

/** A request whose parts have been checked by the route's schemas. */
export interface CheckedRequest<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly headers: IncomingHttpHeaders;
  /** Stands in the answer's `x-request-id` and in the log. */
  readonly requestId: string;
  readonly raw: FastifyRequest;
}

/** How a route's refusals are told; by default as problems (RFC 9457). */
export type TellRefusal = (
  refusal: Refusal,
  requestId: string,
) => {
  readonly body: unknown;
  readonly contentType: string;
};

/** What a route says of itself; its schemas check the request and make the OpenAPI document. */
export interface RouteDefinition<Params, Query, Body> {
  readonly method: Method;
  /** As OpenAPI writes it: `/v1/sessions/{sessionId}`. */
  readonly path: string;
  /** The operation's id. */
  readonly name: string;
  readonly summary: string;
  /** `open`: served without a token. Default: the token is needed. */
  readonly access?: "open";
  readonly params?: z.ZodType<Params>;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  /** The headers that it reads, and what each is for. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** The statuses of its refusals, for the document, beyond those of every route. */
  readonly refusals?: readonly number[];
  readonly tellRefusal?: TellRefusal;
  /** Answers the body, or sends it through `reply` and answers that; a `Refusal` that it throws is told. */
  readonly handle: (request: CheckedRequest<Params, Query, Body>, reply: FastifyReply) => Promise<unknown>;
}

/** A route as the server holds it: a list of them forgets each one's types, and `run` checks before it handles. */
export interface Route extends Omit<RouteDefinition<unknown, unknown, unknown>, "handle"> {
  run(request: FastifyRequest, reply: FastifyReply): Promise<unknown>;
}

/** What the server keeps of a route beside the framework's own. */
export interface RouteConfig {
  readonly access?: "open" | undefined;
  readonly tellRefusal?: TellRefusal | undefined;
}

export const routeConfigOf = (request: FastifyRequest): RouteConfig => request.routeOptions.config as RouteConfig;

function checked<Value>(schema: z.ZodType<Value> | undefined, value: unknown, place: string): Value {
  // Without a schema nobody looks at the value.
  if (schema === undefined) return undefined as Value;
  const result = schema.safeParse(value ?? {});
  if (result.success) return result.data;
  const fields = result.error.issues.flatMap((issue): FieldProblem[] => {
    const names = issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
    const message = issue.code === "unrecognized_keys" ? "is unknown" : issue.message;
    return names.map((name) => ({ field: [place, ...name.map(String)].join(".").slice(0, 200), message }));
  });
  const detail = fields.map(({ field, message }) => `${field}: ${message}`).join("; ");
  throw new Refusal(400, "request_invalid", `The request does not fit. ${detail.slice(0, 1000)}`, {
    fields: fields.slice(0, 20),
  });
}

/** Gives a route its types: what `handle` gets is what the schemas answer. */
export function defineRoute<Params = unknown, Query = unknown, Body = unknown>(
  definition: RouteDefinition<Params, Query, Body>,
): Route {
  const { handle, params, query, body, ...facts } = definition;
  return {
    ...facts,
    ...(params ? { params } : {}),
    ...(query ? { query } : {}),
    ...(body ? { body } : {}),
    run: (request, reply) =>
      handle(
        {
          params: checked(params, request.params, "path"),
          query: checked(query, request.query, "query"),
          body: checked(body, request.body, "body"),
          headers: request.headers,
          requestId: request.id,
          raw: request,
        },
        reply,
      ),
  };
}

export function registerRoute(server: FastifyInstance, route: Route): void {
  const config: RouteConfig = { access: route.access, tellRefusal: route.tellRefusal };
  server.route({
    method: route.method,
    url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    config,
    handler: async (request, reply) => route.run(request, reply),
  });
}

export const problemSchema: z.ZodType<Problem> = z.object({
  type: z.literal("about:blank"),
  title: z.string(),
  status: z.int(),
  code: z.string(),
  detail: z.string(),
  fields: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
  requestId: z.string().optional(),
}) as z.ZodType<Problem>;
