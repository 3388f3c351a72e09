import { z } from "zod";
import { whenClientGone } from "../client-gone.ts";
import type { EventStream } from "../event-stream.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { refusalOf } from "../refusal.ts";
import type { Refusal } from "../refusal.ts";
import { defineRoute } from "../route.ts";
import type { Route } from "../route.ts";
import type { Answering } from "./answering.ts";
import type { AnswerPiece } from "./answer-reader.ts";
import { begunStream, wholeAnswer } from "./answer-stream.ts";
import { chunkOf, completionOf, deltaOf, extensionOf, finishReasonOf, usageOf } from "./chat-answer.ts";
import type { CompletionHead } from "./chat-answer.ts";
import { callersToolsOf, chatRequest, conversationOf, modelSettingsOf } from "./chat-request.ts";
import type { ChatBody } from "./chat-request.ts";
import { answeringModel, modelOf } from "./models.ts";
import type { OpenAnswer } from "./open-answer.ts";
import { errorOf, refusalOfTurn, tellOpenAi } from "./openai-error.ts";
import { headerTexts, readHeaders } from "./request-headers.ts";

const completion = z.looseObject({ id: z.string(), object: z.literal("chat.completion") });
const modelSchema = z.looseObject({ id: z.string(), object: z.literal("model") });

/** Sends the rest of a completion as chunks; a client that has gone reads nothing, and the turn is read to its end. */
async function sendChunks(
  stream: EventStream,
  pieces: AsyncIterable<AnswerPiece>,
  answer: OpenAnswer,
  head: CompletionHead,
  includeUsage: boolean,
): Promise<void> {
  const send = (chunk: object): void => stream.send(JSON.stringify(includeUsage ? { usage: null, ...chunk } : chunk));
  // What came is not whole: no finish reason is told, and the client throws.
  const refuse = (refusal: Refusal): void => stream.send(JSON.stringify({ error: errorOf(refusal) }));
  try {
    send(chunkOf(head, { role: "assistant", content: "" }));
    for await (const piece of pieces) {
      const delta = deltaOf(piece);
      if (delta) send(chunkOf(head, delta));
      if (piece.kind !== "end" && piece.kind !== "calls") continue;
      if (piece.kind === "end" && piece.finished.outcome !== "answered")
        return refuse(refusalOfTurn(piece.finished, answer.isKept));
      const finishReason = piece.kind === "calls" ? "tool_calls" : finishReasonOf(piece.finished);
      send({ ...chunkOf(head, {}, finishReason), ...extensionOf(answer, piece) });
    }
    if (includeUsage) send({ ...head, object: "chat.completion.chunk", choices: [], usage: usageOf(answer.usage) });
    stream.send("[DONE]");
  } catch (error) {
    refuse(refusalOf(error));
    throw error;
  } finally {
    stream.end();
  }
}

export function chatRoutes(parts: GatewayParts, answering: Answering): readonly Route[] {
  const { agent, host, streams } = parts;
  const createChatCompletion = defineRoute<unknown, unknown, ChatBody>({
    method: "POST",
    path: "/v1/chat/completions",
    name: "createChatCompletion",
    summary:
      "A turn in the form of OpenAI's API. X-Session-Id names a durable session, X-Session-Key a conversation for the prompt cache, Idempotency-Key (or X-Input-Id) makes a retry safe, X-On-Busy is wait, reject or interrupt.",
    body: chatRequest,
    answers: { 200: { description: "The completion; as an event stream with stream: true.", schema: completion } },
    headers: headerTexts,
    refusals: [404, 409, 429, 502, 504],
    tellRefusal: tellOpenAi,
    handle: async ({ body, headers }, reply) => {
      const model = answeringModel(agent.modelId, body.model);
      using place = body.stream ? streams.place() : undefined;
      const { prompt_cache_key: cacheKey } = body;
      const asked = readHeaders(headers);
      const answer = await answering.begin({
        conversation: conversationOf(body),
        headers: { ...asked, sessionKey: asked.sessionKey ?? cacheKey ?? undefined },
        tools: callersToolsOf(body),
        model: modelSettingsOf(body),
        isStored: body.store ?? false,
        isResumable: false,
        param: "messages",
      });
      whenClientGone(reply, () => answer.abandon());
      if (answer.isKept) reply.header("x-session-id", answer.sessionId);
      const head = {
        id: `chatcmpl-${answer.inputId}`,
        created: Math.floor(host.clock.wallMs() / 1000),
        model,
      };
      if (!place) return completionOf(head, answer, await wholeAnswer(answer));
      const pieces = await begunStream(host, answer);
      const includeUsage = body.stream_options?.include_usage ?? false;
      await streams.told(sendChunks(place.open(reply), pieces, answer, head, includeUsage));
      return reply;
    },
  });

  const listModels = defineRoute({
    method: "GET",
    path: "/v1/models",
    name: "listModels",
    summary: "The model that answers here, in the form of OpenAI's API.",
    answers: {
      200: { description: "One.", schema: z.object({ object: z.literal("list"), data: z.array(modelSchema) }) },
    },
    tellRefusal: tellOpenAi,
    handle: async () => ({ object: "list", data: [modelOf(agent.modelId)] }),
  });

  const readModel = defineRoute<{ readonly model: string }>({
    method: "GET",
    path: "/v1/models/{model}",
    name: "readModel",
    summary: "One model, by its name; a slash in it is written as %2F.",
    params: z.object({ model: z.string().max(400) }),
    answers: { 200: { description: "The model.", schema: modelSchema } },
    refusals: [404],
    tellRefusal: tellOpenAi,
    handle: async ({ params: { model } }) => {
      return modelOf(answeringModel(agent.modelId, model));
    },
  });
  return [createChatCompletion, listModels, readModel];
}
