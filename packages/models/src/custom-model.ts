import type { LanguageModelV3 } from "@ai-sdk/provider";
import { choiceError } from "./errors.ts";
import { guardModel } from "./guarded-model.ts";
import type { ResolvedModel } from "./resolved-model.ts";

/**
 * Takes any AI SDK language model (specification v3) where a resolved one is expected, with the same endings of its calls.
 *
 * Its transport stays its own: how long it waits and whether an abort closes its socket is its maker's business; the
 * call itself settles at once. `id` defaults to `provider/modelId`. Throws `MODEL_OPTION_INVALID` for another version.
 */
export function customModel(
  languageModel: LanguageModelV3,
  id: string = `${languageModel.provider}/${languageModel.modelId}`,
): ResolvedModel {
  const { specificationVersion } = languageModel as { specificationVersion: string };
  if (specificationVersion !== "v3") {
    throw choiceError(
      "MODEL_OPTION_INVALID",
      `Cannot use ${id}: expected an AI SDK language model of specification v3, got ${specificationVersion}. Use a provider package made for AI SDK 6.`,
    );
  }
  let isClosed = false;
  const close = async (): Promise<void> => void (isClosed = true);
  const guarded = guardModel(languageModel, {
    subject: { id, secrets: [], isForeign: true },
    alwaysGivesReason: false,
    isClosed: () => isClosed,
  });
  return { id, languageModel: guarded, close, [Symbol.asyncDispose]: close };
}
