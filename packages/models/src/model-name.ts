import { choiceError } from "./errors.ts";

export const providerNames = ["openai", "anthropic", "openai-compatible", "demo"] as const;

export type ProviderName = (typeof providerNames)[number];

export interface ModelName {
  readonly provider: ProviderName;
  /** Everything after the first slash; may hold slashes itself (`meta-llama/Llama-3.3`). */
  readonly modelId: string;
}

const expectation = `expected PROVIDER/MODEL, where PROVIDER is ${providerNames.slice(0, -1).join(", ")} or ${providerNames.at(-1)}`;
const longestNameLength = 256;

// What a person typed stands in the message as one short quoted word, whatever it holds.
const shown = (name: string): string => JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);

const isProvider = (text: string): text is ProviderName => (providerNames as readonly string[]).includes(text);

/** Takes a model's name apart. Throws `MODEL_NAME_INVALID`, `MODEL_PROVIDER_RESERVED` or `MODEL_PROVIDER_UNKNOWN`. */
export function parseModelName(name: string): ModelName {
  if (typeof name !== "string")
    throw choiceError("MODEL_NAME_INVALID", `Cannot choose a model: ${expectation}, got ${typeof name}.`);
  const slash = name.indexOf("/");
  if (slash < 0)
    throw choiceError("MODEL_NAME_INVALID", `Cannot choose model ${shown(name)}: ${expectation}; it has no slash.`);
  const provider = name.slice(0, slash);
  const modelId = name.slice(slash + 1);
  if (provider === "local") {
    throw choiceError(
      "MODEL_PROVIDER_RESERVED",
      `Cannot choose model ${shown(name)}: the provider local is reserved. For a server on this machine use openai-compatible/MODEL with its base_url.`,
    );
  }
  if (!isProvider(provider)) {
    const near = provider.trim().toLowerCase();
    const hint = isProvider(near) ? ` Did you mean ${near}/${shown(modelId).slice(1, -1)}?` : "";
    throw choiceError(
      "MODEL_PROVIDER_UNKNOWN",
      `Cannot choose model ${shown(name)}: unknown provider ${shown(provider)}, ${expectation}.${hint}`,
    );
  }
  if (modelId === "")
    throw choiceError(
      "MODEL_NAME_INVALID",
      `Cannot choose model ${shown(name)}: ${expectation}; nothing follows the slash.`,
    );
  if (/[\s\p{Cc}]/u.test(modelId) || name.length > longestNameLength) {
    throw choiceError(
      "MODEL_NAME_INVALID",
      `Cannot choose model ${shown(name)}: a model's name has no white space and at most ${longestNameLength} characters.`,
    );
  }
  return { provider, modelId };
}
