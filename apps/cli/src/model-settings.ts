import path from "node:path";
import type { Host } from "@turnkeeper/kernel";
import type { CredentialSource, ModelEnvironment, ModelTraits, ProviderSettings } from "@turnkeeper/models";
import type { Config, ConfigurableProvider, ModelConfig } from "./config/config.ts";
import type { Environment } from "./output.ts";

/** What config.yaml says of providers and models, in the words of the package: milliseconds, camel case. */

type Settings = Partial<Record<ConfigurableProvider, ProviderSettings>>;

/** Where a provider's tokens are; nothing where it has a key. */
export function tokenFileOf(config: Config, provider: ConfigurableProvider, homeFolder: string): string | undefined {
  const oauth = config.providers[provider]?.oauth;
  if (!oauth) return undefined;
  return path.resolve(homeFolder, oauth.token_file ?? path.join("tokens", `${provider}.json`));
}

/** The settings of one provider; a source of its tokens is made, which opens nothing yet. */
export async function providerSettings(
  config: Config,
  provider: ConfigurableProvider,
  deps: {
    readonly host: Host;
    readonly environment: Environment;
    readonly env: ModelEnvironment;
    readonly homeFolder: string;
  },
): Promise<Settings> {
  const settings = Object.hasOwn(config.providers, provider) ? config.providers[provider] : undefined;
  if (!settings) return {};
  const { base_url, api_key_env, silence_s, context_window, api } = settings;
  const credential = await credentialOf(config, provider, deps);
  return {
    [provider]: {
      ...(base_url === undefined ? {} : { baseUrl: base_url }),
      ...(api_key_env === undefined ? {} : { apiKeyEnv: api_key_env }),
      ...(credential ? { credential } : {}),
      ...(silence_s === undefined ? {} : { silenceMs: silence_s * 1000 }),
      ...(context_window === undefined ? {} : { contextWindowTokens: context_window }),
      ...(api === undefined ? {} : { api }),
    },
  };
}

async function credentialOf(
  config: Config,
  provider: ConfigurableProvider,
  {
    host,
    environment,
    env,
    homeFolder,
  }: {
    readonly host: Host;
    readonly environment: Environment;
    readonly env: ModelEnvironment;
    readonly homeFolder: string;
  },
): Promise<CredentialSource | undefined> {
  const file = tokenFileOf(config, provider, homeFolder);
  const oauth = config.providers[provider]?.oauth;
  if (file === undefined || !oauth) return undefined;
  const [{ refreshableCredential }, { fileLock }] = await Promise.all([
    import("@turnkeeper/models"),
    import("@turnkeeper/state-store-sqlite"),
  ]);
  const { token_url, client_id, client_secret_env, scope } = oauth;
  const clientSecret = client_secret_env === undefined ? undefined : environment[client_secret_env]?.trim();
  return refreshableCredential(
    { host, env, lock: fileLock(`${file}.lock`, { host }) },
    {
      file,
      tokenUrl: token_url,
      clientId: client_id,
      ...(clientSecret ? { clientSecret } : {}),
      ...(scope === undefined ? {} : { scope }),
    },
  );
}

function traitsOf({
  context_window,
  max_output,
  price,
  tools,
  system,
  parallel_calls,
  output_limit_field,
  cache,
}: ModelConfig): ModelTraits {
  return {
    ...(context_window === undefined ? {} : { contextWindowTokens: context_window }),
    ...(max_output === undefined ? {} : { outputTokensMax: max_output }),
    ...(price === undefined
      ? {}
      : {
          price: {
            inputPerMillion: price.input,
            outputPerMillion: price.output,
            ...(price.cached_input === undefined ? {} : { cachedInputPerMillion: price.cached_input }),
            ...(price.cache_write === undefined ? {} : { cacheWritePerMillion: price.cache_write }),
          },
        }),
    ...(tools === undefined ? {} : { takesTools: tools }),
    ...(system === undefined ? {} : { takesSystem: system }),
    ...(parallel_calls === undefined ? {} : { callsInParallel: parallel_calls }),
    ...(output_limit_field === undefined ? {} : { outputLimitField: output_limit_field }),
    ...(cache === undefined ? {} : { cache }),
  };
}

export function modelTraits(config: Config): Readonly<Record<string, ModelTraits>> {
  return Object.fromEntries(Object.entries(config.models).map(([name, model]) => [name, traitsOf(model)]));
}
