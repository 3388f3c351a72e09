/** The AI SDK's providers: each is loaded when one of its models is chosen, and not before. */
import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { ProviderName } from "./model-name.ts";
import type { ResolvedSettings } from "./provider-settings.ts";
import type { Transport } from "./transport.ts";

type Load = (modelId: string, settings: ResolvedSettings, transport: Transport) => Promise<LanguageModelV3>;

/**
 * The chat format goes through the tolerant client for `openai/…` too: whatever answers at another address than
 * OpenAI's own sends reasoning, or leaves out fields, in ways that the strict client drops or refuses.
 */
const chat = async (
  name: string,
  modelId: string,
  { apiKey, baseUrl }: ResolvedSettings,
  { fetch }: Transport,
): Promise<LanguageModelV3> => {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const key = apiKey === undefined ? {} : { apiKey };
  return createOpenAICompatible({ name, baseURL: baseUrl, fetch, includeUsage: true, ...key }).chatModel(modelId);
};

const openai: Load = async (modelId, settings, transport) => {
  if (settings.api === "chat") return chat("openai", modelId, settings, transport);
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { apiKey, baseUrl } = settings;
  const key = apiKey === undefined ? {} : { apiKey };
  return createOpenAI({ baseURL: baseUrl, fetch: transport.fetch, ...key }).responses(modelId);
};

const anthropic: Load = async (modelId, { apiKey, baseUrl }, { fetch }) => {
  const { createAnthropic } = await import("@ai-sdk/anthropic");
  return createAnthropic({ baseURL: baseUrl, fetch, ...(apiKey === undefined ? {} : { apiKey }) }).messages(modelId);
};

const openaiCompatible: Load = (modelId, settings, transport) =>
  chat("openai-compatible", modelId, settings, transport);

export const providerSdks: Readonly<Record<Exclude<ProviderName, "demo">, Load>> = {
  openai,
  anthropic,
  "openai-compatible": openaiCompatible,
};
