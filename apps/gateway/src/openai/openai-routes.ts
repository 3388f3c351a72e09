import type { GatewayParts } from "../gateway-parts.ts";
import type { Route } from "../route.ts";
import { Answering } from "./answering.ts";
import { chatRoutes } from "./chat-routes.ts";
import { responseRoutes } from "./response-routes.ts";

/** The routes in the form of OpenAI's API. */
export function openAiRoutes(parts: GatewayParts): readonly Route[] {
  const answering = new Answering(parts, parts.handed);
  return [...chatRoutes(parts, answering), ...responseRoutes(parts, answering)];
}
