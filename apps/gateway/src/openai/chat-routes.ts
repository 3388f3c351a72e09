import { z } from "zod";
import type { GatewayParts } from "../gateway-parts.ts";
import { defineRoute } from "../route.ts";
import type { Route } from "../route.ts";
import type { Answering } from "./answering.ts";
import { callersToolsOf, chatRequest, conversationOf, modelSettingsOf } from "./chat-request.ts";
import type { ChatBody } from "./chat-request.ts";
import { CompletionWriter } from "./completion-writer.ts";
import { answeringModel, modelOf } from "./models.ts";
import { tellOpenAi } from "./openai-error.ts";
import { headerTexts, readHeaders } from "./request-headers.ts";
import { tellAnswer } from "./told-answer.ts";

const completion = z.looseObject({ id: z.string(), object: z.literal("chat.completion") });
const modelSchema = z.looseObject({ id: z.string(), object: z.literal("model") });

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
      const created = Math.floor(host.clock.wallMs() / 1000);
      const head = { id: `chatcmpl-${answer.inputId}`, created, model };
      const writer = new CompletionWriter(head, answer, body.stream_options?.include_usage ?? false);
      // The place is kept until the answer is told.
      return await tellAnswer(parts, reply, answer, writer, place);
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
