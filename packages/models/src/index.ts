// Choosing a model.
export { resolveModel } from "./resolve-model.ts";
export { customModel } from "./custom-model.ts";
export { withFallback } from "./fallback.ts";
export type { ResolvedModel } from "./resolved-model.ts";
export { proxyVariables } from "./proxy.ts";
export type { ModelEnvironment, ProviderSettings, ResolveModelOptions } from "./provider-settings.ts";

// What is known of a model, and what it costs.
export type { CacheMark, ModelTraits } from "./model-traits.ts";
export { costOf } from "./model-price.ts";
export type { ModelPrice, TokenCounts } from "./model-price.ts";
export { cacheScope } from "./cache-scope.ts";
export type { CacheConversation } from "./cache-scope.ts";

// Tokens in place of keys.
export { refreshableCredential } from "./refreshable-credential.ts";
export type { RefreshableCredentialDeps, RefreshableCredentialOptions } from "./refreshable-credential.ts";
export type { CredentialLock, CredentialSource } from "./credential.ts";
export type { TokenEndpoint } from "./token-request.ts";

// What a failed call means.
export { describeModelError } from "./model-failure.ts";
export type { ModelFailure } from "./model-failure.ts";
export type { ModelCallErrorCode, ModelChoiceErrorCode, ModelErrorCode } from "./errors.ts";
