import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import { cliError, failureLine } from "./cli-error.ts";
import type { Config, ConfigFinding, ConfigurableProvider } from "./config/config.ts";
import type { LoadedConfig } from "./config/config-file.ts";
import { modelTraits, providerSettings } from "./model-settings.ts";
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
  if (from.environment[variable]?.trim() || config.providers.openai?.oauth)
    return { name: config.model, source: "default" };
  return { name: demoModel, source: "fallback" };
}

const locationVariables = ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"];
/** The watchdog looks every poll and asks twice; the transport must not be the first to give up. */
const transportMarginMs = 30_000;

export interface ModelDeps {
  readonly environment: Environment;
  readonly host: Host;
  readonly homeFolder: string;
}

/** Resolves one name. Rejects with a `ModelChoiceErrorCode`. */
async function resolveOne(name: string, config: Config, deps: ModelDeps): Promise<ResolvedModel> {
  const { proxyVariables, resolveModel } = await import("@turnkeeper/models");
  const provider = name.split("/")[0] as ConfigurableProvider;
  const watchdogMs = config.agent.turn_liveness.timeout_s * 1000;
  const ownSilenceS = Object.hasOwn(config.providers, provider) ? config.providers[provider]?.silence_s : undefined;
  const silenceMs = ownSilenceS === undefined ? watchdogMs : ownSilenceS * 1000;
  const variables = [...Object.values(keyVariables(config)), ...locationVariables, ...proxyVariables];
  const names = variables.filter((variable) => variable !== undefined);
  const env = Object.fromEntries(names.map((variable) => [variable, deps.environment[variable]]));
  return resolveModel(name, {
    host: deps.host,
    env,
    providers: await providerSettings(config, provider, { ...deps, env }),
    models: modelTraits(config),
    // Without a watchdog nobody else ends a silent wait: then the transport's own bound stands.
    ...(watchdogMs > 0 ? { silenceMs: watchdogMs, graceMs: silenceMs + transportMarginMs } : { graceMs: 0 }),
  });
}

/** The models that may answer in the place of a chosen one, as far as they can be used, and what is wrong with others. */
async function openFallbacks(
  names: readonly string[],
  config: Config,
  deps: ModelDeps,
): Promise<{ readonly models: readonly ResolvedModel[]; readonly complaints: readonly string[] }> {
  const opened = await Promise.allSettled(names.map((name) => resolveOne(name, config, deps)));
  const models = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const complaints = opened.flatMap((one) => (one.status === "rejected" ? [failureLine(one.reason)] : []));
  return { models, complaints };
}

/**
 * Resolves a choice, and behind one that config.yaml made the models of `fallback`; one of these that cannot be used is
 * left out and told of. Rejects with `USAGE` and what to do, whatever is wrong with the choice itself.
 */
export async function openModel(choice: ModelChoice, config: Config, deps: ModelDeps): Promise<ResolvedModel> {
  const { withFallback } = await import("@turnkeeper/models");
  let first: ResolvedModel;
  try {
    first = await resolveOne(choice.name, config, deps);
  } catch (error) {
    throw cliError("USAGE", failureLine(error), error);
  }
  // Whoever named a model for this run wants that one; and the demo stands in for nobody.
  if (choice.source === "--model" || choice.source === "fallback") return first;
  const others = config.fallback.filter((name, index, all) => name !== choice.name && all.indexOf(name) === index);
  const { models, complaints } = await openFallbacks(others, config, deps);
  const model = withFallback(first, ...models);
  const note = [model.note, ...complaints.map((line) => `A fallback is left out: ${line}`)].filter(Boolean).join(" ");
  return note === "" ? model : { ...model, note };
}

/** The model that names sessions, where config.yaml has one; what is wrong with one that cannot be used. */
export async function openTitleModel(
  config: Config,
  deps: ModelDeps,
): Promise<{ readonly model?: ResolvedModel; readonly complaint?: string }> {
  const { title_model } = config.agent;
  if (title_model === undefined) return {};
  const { models, complaints } = await openFallbacks([title_model], config, deps);
  const [model] = models;
  const [complaint] = complaints;
  return model ? { model } : { complaint: `Sessions are named by their first messages: ${complaint ?? title_model}` };
}

/** A key is no setting of the file, and may be set where the command runs that needs it. */
const isOfTheEnvironment = (error: unknown): boolean =>
  CodedError.is(error) && /^MODEL_(?:KEY|CREDENTIAL)_/.test(error.code);

/** What is wrong with the models that the file names, by setting. */
export async function findWrongModels(
  { config, configured }: Pick<LoadedConfig, "config" | "configured">,
  deps: ModelDeps,
): Promise<readonly ConfigFinding[]> {
  const named: readonly (readonly [string, readonly string[]])[] = [
    ["model", [config.model]],
    ["fallback", config.fallback],
    ["agent.title_model", config.agent.title_model === undefined ? [] : [config.agent.title_model]],
  ];
  const findings: ConfigFinding[] = [];
  for (const [key, names] of named.filter(([one]) => configured.has(one))) {
    for (const name of names) {
      try {
        await (await resolveOne(name, config, deps)).close();
      } catch (error) {
        if (isOfTheEnvironment(error)) continue;
        findings.push({ key, line: configured.get(key), message: failureLine(error).replace(/\.$/, "") });
      }
    }
  }
  return findings;
}

/** What the user is told before the first call, on one line; nothing for a model that was chosen and is real. */
export function modelNote(choice: ModelChoice, model: ResolvedModel, config: Config): string | undefined {
  if (choice.source !== "fallback") return model.note;
  const variable = keyVariables(config).openai ?? "";
  return `No model is configured and ${variable} is not set: using ${choice.name}, which works offline and is no language model. Set ${variable}, or choose one with --model.`;
}
