import { z } from "zod";
import type { GatewayParts } from "./gateway-parts.ts";
import { openApiDocument } from "./openapi.ts";
import { drainingRefusal, Refusal, retryLater, storeRefusal } from "./refusal.ts";
import { defineRoute } from "./route.ts";
import type { Route } from "./route.ts";
import { packageVersion } from "./package-version.ts";
import { StoreLook } from "./store-look.ts";

const status = z.object({ status: z.string() });

/** A process that keeps everybody waiting for longer is better left alone for a while. */
const loopDelayMsMax = 2000;

/** Whether the process answers, and whether it can do its work. */
export function probeRoutes(parts: GatewayParts): readonly Route[] {
  const { store, host, storeFailures, isDraining, loopDelay, metrics } = parts;
  const look = new StoreLook(store, host.timers);
  const healthz = defineRoute({
    method: "GET",
    path: "/healthz",
    name: "healthz",
    summary: "The process answers.",
    access: "open",
    answers: { 200: { description: "It does.", schema: status } },
    handle: () => Promise.resolve({ status: "ok" }),
  });
  const readyz = defineRoute({
    method: "GET",
    path: "/readyz",
    name: "readyz",
    summary: "Turns can be run: the store answers, the event loop runs, and the gateway is not shutting down.",
    access: "open",
    answers: { 200: { description: "They can.", schema: status } },
    handle: async () => {
      if (isDraining()) throw drainingRefusal();
      const delayMs = Math.round(loopDelay.longestMs);
      if (delayMs > loopDelayMsMax)
        throw new Refusal(503, "loop_blocked", `The event loop kept its callers waiting for ${delayMs} ms.`, {
          headers: retryLater,
        });
      // A store that can be read may take nothing: a full disk.
      const { recentCode } = storeFailures;
      if (recentCode !== undefined) throw storeRefusal(recentCode);
      await look.answers();
      return { status: "ready" };
    },
  });
  const showMetrics = defineRoute({
    method: "GET",
    path: "/metrics",
    name: "metrics",
    summary: "What happens in this process, for Prometheus.",
    answers: { 200: { description: "Its text format.", contentType: "text/plain" } },
    handle: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  });
  return [healthz, readyz, showMetrics];
}

/** The document of all other routes; it is made when it is first asked for. */
export function documentRoute(routes: readonly Route[]): Route {
  let document: Record<string, unknown> | undefined;
  return defineRoute({
    method: "GET",
    path: "/openapi.json",
    name: "openapi",
    summary: "This interface as OpenAPI 3.1.",
    access: "open",
    answers: { 200: { description: "The document." } },
    handle: () => Promise.resolve((document ??= openApiDocument(routes, packageVersion()))),
  });
}
