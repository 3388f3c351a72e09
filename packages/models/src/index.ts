// Choosing a model.
export { resolveModel } from "./resolve-model.ts";
export { customModel } from "./custom-model.ts";
export type { ResolvedModel } from "./resolved-model.ts";
export type { ModelEnvironment, ProviderSettings, ResolveModelOptions } from "./provider-settings.ts";

// What a failed call means.
export { describeModelError } from "./model-failure.ts";
export type { ModelFailure } from "./model-failure.ts";
export type { ModelCallErrorCode, ModelChoiceErrorCode, ModelErrorCode } from "./errors.ts";
