import { systemHost } from "@turnkeeper/kernel";
import { failureLine } from "../cli-error.ts";
import { leavesOf } from "../config/config.ts";
import type { ConfigFinding } from "../config/config.ts";
import { configFileOf, findingLine, loadConfig } from "../config/config-file.ts";
import type { LoadedConfig } from "../config/config-file.ts";
import { readContext } from "../command-context.ts";
import type { CommandContext, CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { table } from "../display/transcript-text.ts";
import { exitCode } from "../exit-code.ts";
import { locateHome } from "../home.ts";
import { chooseModel, findWrongModels, keyVariables } from "../model-choice.ts";
import { locateStore, withoutSecrets } from "../store-location.ts";
import { jsonLine } from "../json-line.ts";

interface EffectiveSetting {
  readonly key: string;
  readonly value: unknown;
  readonly source: string;
}

/** Base URLs that the environment sets win over the file's. */
const urlVariables = { openai: "OPENAI_BASE_URL", anthropic: "ANTHROPIC_BASE_URL" } as const;

function effectiveSettings(io: CommandIo, context: CommandContext): readonly EffectiveSetting[] {
  const { loaded, config, home, store } = context;
  const settings = new Map<string, EffectiveSetting>([
    [
      "home",
      {
        key: "home",
        value: home.folder,
        source: home.source === "TURNKEEPER_HOME" ? "environment TURNKEEPER_HOME" : home.source,
      },
    ],
  ]);
  for (const [key, value] of leavesOf(config)) {
    const line = loaded.configured.get(key);
    const source = !loaded.configured.has(key) ? "default" : line === undefined ? "config.yaml" : `config.yaml:${line}`;
    settings.set(key, { key, value, source });
  }
  settings.set("store.url", {
    key: "store.url",
    value: store.shown,
    source: store.source === "config.yaml" ? (settings.get("store.url")?.source ?? store.source) : store.source,
  });
  const listening = settings.get("store.listen_url");
  if (listening && config.store.listen_url.includes("://"))
    settings.set(listening.key, { ...listening, value: withoutSecrets(config.store.listen_url) });
  const choice = chooseModel(config, loaded.configured.has("model"), { environment: io.environment });
  if (choice.source === "fallback")
    settings.set("model", {
      key: "model",
      value: choice.name,
      source: `default, because ${keyVariables(config).openai} is not set`,
    });
  for (const [provider, variable] of Object.entries(urlVariables)) {
    const value = io.environment[variable];
    const key = `providers.${provider}.base_url`;
    if (value) settings.set(key, { key, value, source: `environment ${variable}` });
  }
  return [...settings.values()];
}

/** `turnkeeper config show`: what is in force, and who said so. Keys of providers are never printed. */
export async function showConfig(io: CommandIo, flags: CommonFlags): Promise<number> {
  const context = await readContext(io, flags);
  const settings = effectiveSettings(io, context);
  if (flags.json) {
    const { file, exists } = context.loaded;
    io.stdout.line(jsonLine({ file, exists, settings }));
    return exitCode.ok;
  }
  const shown = (value: unknown): string => (typeof value === "string" ? value : jsonLine(value));
  const rows = settings.map(({ key, value, source }) => [`${key}:`, `${shown(value)}  # ${source}`]);
  for (const line of table(rows)) io.stdout.line(line);
  return exitCode.ok;
}

/** A `store.url` that no command can use; the schema knows only that it is text. */
function wrongStore(io: CommandIo, { config, configured }: LoadedConfig, home: string): readonly ConfigFinding[] {
  try {
    locateStore(io, { configured: config.store.url, home });
    return [];
  } catch (error) {
    const key = "store.url";
    return [{ key, line: configured.get(key), message: failureLine(error).replace(/\.$/, "") }];
  }
}

/** `turnkeeper config check`: every finding on one line. */
export async function checkConfigFile(io: CommandIo, flags: CommonFlags): Promise<number> {
  const { folder: homeFolder } = locateHome(io, flags.home);
  const loaded = await loadConfig(homeFolder);
  const { file, exists } = loaded;
  const ofModels = await findWrongModels(loaded, { environment: io.environment, host: systemHost, homeFolder });
  const findings = [...loaded.findings, ...ofModels, ...wrongStore(io, loaded, homeFolder)];
  if (flags.json) io.stdout.line(jsonLine({ file, exists, findings }));
  else if (findings.length > 0) for (const finding of findings) io.stdout.line(findingLine(file, finding));
  else io.stderr.line(exists ? `${file} is right.` : `There is no ${file}; every setting has its default.`);
  return findings.length === 0 ? exitCode.ok : exitCode.usage;
}

/** `turnkeeper config schema`. */
export async function printSchema(io: CommandIo): Promise<number> {
  const { configJsonSchema } = await import("../config/config-schema.ts");
  io.stdout.line(JSON.stringify(configJsonSchema(), null, 2));
  return exitCode.ok;
}

/** `turnkeeper config path`. */
export async function printPath(io: CommandIo, flags: CommonFlags): Promise<number> {
  io.stdout.line(configFileOf(locateHome(io, flags.home).folder));
  return exitCode.ok;
}
