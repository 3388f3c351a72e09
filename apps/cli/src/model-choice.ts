import type { Host } from "@turnkeeper/kernel";
import type { ProviderSettings, ResolvedModel } from "@turnkeeper/models";
import { cliError, failureLine } from "./cli-error.ts";
import type { Config, ConfigurableProvider } from "./config/config.ts";
import type { Environment } from "./output.ts";

export const demoModel = "demo/tools";

/** Which model runs and who said so. */
export interface ModelChoice {
  readonly name: string;
  /** `fallback`: nobody chose, and the default has no key. */
  readonly source: "--model" | "config.yaml" | "default" | "fallback";
}

/** The environment variables that a provider's key may come from; the values stay where they are. */
export function keyVariables(config: Config): Readonly<Record<ConfigurableProvider, string | undefined>> {
  return {
    openai: config.providers.openai?.api_key_env ?? "OPENAI_API_KEY",
    anthropic: config.providers.anthropic?.api_key_env ?? "ANTHROPIC_API_KEY",
    "openai-compatible": config.providers["openai-compatible"]?.api_key_env,
  };
}

/** A model that was chosen and cannot be used is an error; a default that nobody chose gives way to the demo. */
export function chooseModel(
  config: Config,
  isConfigured: boolean,
  from: { readonly flag?: string | undefined; readonly environment: Environment },
): ModelChoice {
  if (from.flag !== undefined) return { name: from.flag, source: "--model" };
  if (isConfigured) return { name: config.model, source: "config.yaml" };
  const variable = keyVariables(config).openai ?? "";
  if (from.environment[variable]?.trim()) return { name: config.model, source: "default" };
  return { name: demoModel, source: "fallback" };
}

function settingsOf(config: Config, provider: ConfigurableProvider): ProviderSettings {
  const { base_url, api_key_env, silence_s, context_window, api } = config.providers[provider] ?? {};
  return {
    ...(base_url === undefined ? {} : { baseUrl: base_url }),
    ...(api_key_env === undefined ? {} : { apiKeyEnv: api_key_env }),
    ...(silence_s === undefined ? {} : { silenceMs: silence_s * 1000 }),
    ...(context_window === undefined ? {} : { contextWindowTokens: context_window }),
    ...(api === undefined ? {} : { api }),
  };
}

const locationVariables = ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"];
/** The watchdog looks every poll and asks twice; the transport must not be the first to give up. */
const transportMarginMs = 30_000;

/** Resolves a choice. Rejects with `USAGE` and what to do, whatever is wrong with it. */
export async function openModel(
  choice: ModelChoice,
  config: Config,
  deps: { readonly environment: Environment; readonly host: Host },
): Promise<ResolvedModel> {
  const { resolveModel } = await import("@turnkeeper/models");
  const provider = choice.name.split("/")[0] as ConfigurableProvider;
  const watchdogMs = config.agent.turn_liveness.timeout_s * 1000;
  const ownSilenceS = Object.hasOwn(config.providers, provider) ? config.providers[provider]?.silence_s : undefined;
  const silenceMs = ownSilenceS === undefined ? watchdogMs : ownSilenceS * 1000;
  const names = [...Object.values(keyVariables(config)), ...locationVariables].filter((name) => name !== undefined);
  try {
    return await resolveModel(choice.name, {
      host: deps.host,
      env: Object.fromEntries(names.map((name) => [name, deps.environment[name]])),
      providers: {
        openai: settingsOf(config, "openai"),
        anthropic: settingsOf(config, "anthropic"),
        "openai-compatible": settingsOf(config, "openai-compatible"),
      },
      // Without a watchdog nobody else ends a silent wait: then the transport's own bound stands.
      ...(watchdogMs > 0 ? { silenceMs: watchdogMs, graceMs: silenceMs + transportMarginMs } : { graceMs: 0 }),
    });
  } catch (error) {
    throw cliError("USAGE", failureLine(error), error);
  }
}

/** What the user is told before the first call, on one line; nothing for a model that was chosen and is real. */
export function modelNote(choice: ModelChoice, model: ResolvedModel, config: Config): string | undefined {
  if (choice.source !== "fallback") return model.note;
  const variable = keyVariables(config).openai ?? "";
  return `No model is configured and ${variable} is not set: using ${choice.name}, which works offline and is no language model. Set ${variable}, or choose one with --model.`;
}
