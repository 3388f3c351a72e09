import { z } from "zod";
import { whenClientGone } from "../client-gone.ts";
import type { EventStream } from "../event-stream.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { refusalOf } from "../refusal.ts";
import { defineRoute } from "../route.ts";
import type { Route } from "../route.ts";
import type { Answering } from "./answering.ts";
import type { AnswerPiece } from "./answer-reader.ts";
import { begunStream, checkEnd } from "./answer-stream.ts";
import { answeringModel } from "./models.ts";
import type { OpenAnswer } from "./open-answer.ts";
import { errorOf, tellOpenAi } from "./openai-error.ts";
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

const responseSchema = z.looseObject({ id: z.string(), object: z.literal("response") });

async function wholeResponse(answer: OpenAnswer, writer: ResponseWriter): Promise<object> {
  let last: AnswerPiece | undefined;
  for await (const piece of answer.pieces()) {
    checkEnd(piece, writer.hasText, answer.isKept);
    writer.take(piece);
    last = piece;
  }
  const { type: _type, ...response } = writer.end(last, answer.usage, answer.isKept);
  return response;
}

async function sendResponse(
  stream: EventStream,
  pieces: AsyncIterable<AnswerPiece>,
  answer: OpenAnswer,
  writer: ResponseWriter,
): Promise<void> {
  let last: AnswerPiece | undefined;
  try {
    for (const event of writer.begin()) stream.send(JSON.stringify(event));
    for await (const piece of pieces) {
      for (const event of writer.take(piece)) stream.send(JSON.stringify(event));
      last = piece;
    }
    stream.send(JSON.stringify(writer.ended(writer.end(last, answer.usage, answer.isKept))));
  } catch (error) {
    stream.send(JSON.stringify(writer.failed(errorOf(refusalOf(error)))));
    throw error;
  } finally {
    stream.end();
  }
}

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
      whenClientGone(reply, () => answer.abandon());
      if (answer.isKept) reply.header("x-session-id", answer.sessionId);
      const { sessionId, inputId } = answer;
      const resultOf = conversation.said.findLast(({ role }) => role !== "user");
      const writer = new ResponseWriter({
        id: responseIdOf({ sessionId, inputId, resultOf: resultOf?.role === "tool" ? resultOf.callId : undefined }),
        created_at: Math.floor(host.clock.wallMs() / 1000),
        model,
        previous_response_id: body.previous_response_id ?? null,
        instructions: body.instructions ?? null,
        store: isStored,
      });
      if (!place) return wholeResponse(answer, writer);
      const pieces = await begunStream(host, answer);
      await streams.told(sendResponse(place.open(reply), pieces, answer, writer));
      return reply;
    },
  });
  return [createResponse];
}
