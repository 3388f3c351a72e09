/** The AI SDK's providers: each is loaded when one of its models is chosen, and not before. */
import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { ProviderName } from "./model-name.ts";
import type { ResolvedSettings } from "./provider-settings.ts";
import { shapedBody } from "./request-shape.ts";
import type { ShapeOf } from "./request-shape.ts";
import type { Transport } from "./transport.ts";

/** A client, and how what is said to it alone is to be put. */
export interface ProviderClient extends Omit<ShapeOf, "traits"> {
  readonly languageModel: LanguageModelV3;
}

type Load = (modelId: string, settings: ResolvedSettings, transport: Transport) => Promise<ProviderClient>;

/** Some clients look for a key in the process's environment when they get none; the transport puts the token here. */
const standIn = "token";

/**
 * The chat format goes through the tolerant client for `openai/…` too: whatever answers at another address than
 * OpenAI's own sends reasoning, or leaves out fields, in ways that the strict client drops or refuses.
 */
const chat = async (
  name: string,
  modelId: string,
  { apiKey, baseUrl, traits }: ResolvedSettings,
  { fetch }: Transport,
): Promise<ProviderClient> => {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const provider = createOpenAICompatible({
    name,
    baseURL: baseUrl,
    fetch,
    includeUsage: true,
    transformRequestBody: (body) => shapedBody(body, traits),
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  const optionsName = name === "openai" ? name : "openaiCompatible";
  return { languageModel: provider.chatModel(modelId), format: "openai-chat", optionsName };
};

const openai: Load = async (modelId, settings, transport) => {
  if (settings.api === "chat") return chat("openai", modelId, settings, transport);
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { apiKey = standIn, baseUrl } = settings;
  const provider = createOpenAI({ baseURL: baseUrl, fetch: transport.fetch, apiKey });
  return { languageModel: provider.responses(modelId), format: "openai-responses", optionsName: "openai" };
};

const anthropic: Load = async (modelId, { apiKey, baseUrl }, { fetch }) => {
  const { createAnthropic } = await import("@ai-sdk/anthropic");
  const key = apiKey === undefined ? { authToken: standIn } : { apiKey };
  const provider = createAnthropic({ baseURL: baseUrl, fetch, ...key });
  return { languageModel: provider.messages(modelId), format: "anthropic", optionsName: "anthropic" };
};

const openaiCompatible: Load = (modelId, settings, transport) =>
  chat("openai-compatible", modelId, settings, transport);

export const providerSdks: Readonly<Record<Exclude<ProviderName, "demo">, Load>> = {
  openai,
  anthropic,
  "openai-compatible": openaiCompatible,
};
