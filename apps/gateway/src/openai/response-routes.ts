import { z } from "zod";
import type { GatewayParts } from "../gateway-parts.ts";
import { defineRoute } from "../route.ts";
import type { Route } from "../route.ts";
import type { Answering } from "./answering.ts";
import { answeringModel } from "./models.ts";
import { tellOpenAi } from "./openai-error.ts";
import { headerTexts, readHeaders } from "./request-headers.ts";
import type { RequestHeaders } from "./request-headers.ts";
import { responseIdOf, responsePlace, unknownResponse } from "./response-id.ts";
import {
  callersToolsOfResponse,
  conversationOfInput,
  modelSettingsOfResponse,
  responseRequest,
} from "./response-request.ts";
import type { ResponseBody } from "./response-request.ts";
import { ResponseWriter } from "./response-writer.ts";
import { unfit } from "./said.ts";
import { tellAnswer } from "./told-answer.ts";

const responseSchema = z.looseObject({ id: z.string(), object: z.literal("response") });

/** The session that a request goes on with; none, where it begins one. */
async function namedSession(
  { store }: GatewayParts,
  { previous_response_id: previous }: ResponseBody,
  { sessionId, inputId }: RequestHeaders,
): Promise<string | undefined> {
  if (!previous) return sessionId;
  const place = responsePlace(previous);
  if (sessionId !== undefined && sessionId !== place.sessionId)
    throw unfit("previous_response_id", "The response is of another session than X-Session-Id names.");
  const { entries } = await store.transcript.load(place.sessionId, { all: true, limit: 400 });
  const inputs = entries.flatMap(({ body }) => (body.role === "user" && body.inputId ? [body.inputId] : []));
  if (!inputs.includes(place.inputId))
    throw unknownResponse("There is no response of that id; it may not have been stored, or was deleted.");
  const isRetry = inputId !== undefined && inputs.includes(inputId);
  if (inputs.at(-1) !== place.inputId && !isRetry)
    throw unfit("previous_response_id", "The conversation has gone on since that response, and does not branch here.");
  return place.sessionId;
}

export function responseRoutes(parts: GatewayParts, answering: Answering): readonly Route[] {
  const { agent, host, streams } = parts;
  const createResponse = defineRoute<unknown, unknown, ResponseBody>({
    method: "POST",
    path: "/v1/responses",
    name: "createResponse",
    summary:
      "A turn in the form of OpenAI's newer API: previous_response_id goes on with its session. The headers are those of completions.",
    body: responseRequest,
    answers: { 200: { description: "The response; as an event stream with stream: true.", schema: responseSchema } },
    headers: headerTexts,
    refusals: [404, 409, 429, 502, 504],
    tellRefusal: tellOpenAi,
    handle: async ({ body, headers: given }, reply) => {
      const model = answeringModel(agent.modelId, body.model);
      using place = body.stream ? streams.place() : undefined;
      const headers = readHeaders(given);
      const isStored = body.store ?? true;
      const conversation = conversationOfInput(body);
      const answer = await answering.begin({
        conversation,
        headers: {
          ...headers,
          sessionId: await namedSession(parts, body, headers),
          sessionKey: headers.sessionKey ?? body.prompt_cache_key ?? undefined,
        },
        tools: callersToolsOfResponse(body),
        model: modelSettingsOfResponse(body),
        isStored,
        // Its id names it, and its results may come under that.
        isResumable: isStored,
        param: "input",
      });
      const { sessionId, inputId } = answer;
      const resultOf = conversation.said.findLast(({ role }) => role !== "user");
      const head = {
        id: responseIdOf({ sessionId, inputId, resultOf: resultOf?.role === "tool" ? resultOf.callId : undefined }),
        created_at: Math.floor(host.clock.wallMs() / 1000),
        model,
        previous_response_id: body.previous_response_id ?? null,
        instructions: body.instructions ?? null,
        store: isStored,
      };
      // The place is kept until the answer is told.
      return await tellAnswer(parts, reply, answer, new ResponseWriter(head, answer), place);
    },
  });
  return [createResponse];
}
