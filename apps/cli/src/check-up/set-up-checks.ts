import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import { systemCodeOf } from "../cli-error.ts";
import { findingLine } from "../config/config-file.ts";
import type { LoadedConfig } from "../config/config-file.ts";
import { homeState } from "../home.ts";
import type { HomeLocation } from "../home.ts";
import type { ConfigurableProvider } from "../config/config.ts";
import { chooseModel, keyVariables } from "../model-choice.ts";
import { tokenFileOf } from "../model-settings.ts";
import type { Environment } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import { note, ok, wrong } from "./check.ts";
import type { Check } from "./check.ts";
import { virtualFileSystem } from "./store-files.ts";

const othersMask = 0o077;

export function nodeChecks(version: string): readonly Check[] {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isRight = major > 20 || (major === 20 && minor >= 19);
  return [isRight ? ok("node", version) : wrong("node", `${version} is older than 20.19`, "install a newer Node")];
}

export async function homeChecks({ folder, source }: HomeLocation): Promise<readonly Check[]> {
  const name = "home";
  const where = `${folder} (${source})`;
  let state;
  try {
    state = await homeState(folder);
  } catch (error) {
    return [
      wrong(
        name,
        `${where} cannot be looked at (${codeOf(error)})`,
        "change its permissions, or choose another with --home",
      ),
    ];
  }
  if (state === "not-a-folder")
    return [wrong(name, `${where} is, or lies below, a file`, "choose another with --home or TURNKEEPER_HOME")];
  const standing = state === "folder" ? folder : path.dirname(folder);
  const virtual = await virtualFileSystem(standing);
  if (virtual !== undefined)
    return [
      wrong(name, `${where} is on ${virtual}, which keeps no files`, "choose another with --home or TURNKEEPER_HOME"),
    ];
  if (state === "missing") {
    return (await homeState(path.dirname(folder)).catch(() => "missing")) === "folder"
      ? [note(name, `${where} does not exist yet`, "it is made when the first message is run")]
      : [
          wrong(
            name,
            `${where} does not exist, nor does the folder it would stand in`,
            `make ${path.dirname(folder)}, or choose another with --home`,
          ),
        ];
  }
  try {
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const code = codeOf(error);
    if (code === "EROFS")
      return [
        wrong(name, `${where} is on a file system that is read-only`, "choose another with --home or TURNKEEPER_HOME"),
      ];
    return [
      wrong(
        name,
        `${where} is not writable (${code})`,
        "give this user write permission, or choose another with --home",
      ),
    ];
  }
  const { mode } = await stat(folder);
  if ((mode & othersMask) === 0) return [ok(name, where)];
  return [
    note(
      name,
      `${where} can be entered by other users (mode ${(mode & 0o777).toString(8)})`,
      `chmod 700 ${shellWord(folder)}`,
    ),
  ];
}

export function configChecks({ file, exists, findings }: LoadedConfig): readonly Check[] {
  const name = "config";
  if (findings.length > 0)
    return findings.map((finding) =>
      wrong(name, findingLine(file, finding), {
        first: "correct it there; the schema says what is known",
        next: "turnkeeper config schema",
      }),
    );
  return [exists ? ok(name, file) : ok(name, `no ${file}; every setting has its default`)];
}

/** Whether a provider's tokens can be read; never what they are. */
async function tokenCheck(provider: ConfigurableProvider, file: string): Promise<Check> {
  try {
    const { mode } = await stat(file);
    if (process.platform === "win32" || (mode & othersMask) === 0) return ok(provider, `tokens in ${file}`);
    return wrong(
      provider,
      `${file} can be read by other users (mode ${(mode & 0o777).toString(8)}), so it is not used`,
      `chmod 600 ${shellWord(file)}`,
    );
  } catch (error) {
    return wrong(provider, `no tokens in ${file} (${codeOf(error)})`, "log in, and put the tokens there");
  }
}

/** Says which keys and tokens are there; never what they are. */
export async function providerChecks(
  { config, configured }: LoadedConfig,
  environment: Environment,
  homeFolder: string,
): Promise<readonly Check[]> {
  const choice = chooseModel(config, configured.has("model"), { environment });
  const variables = keyVariables(config);
  const files = (Object.keys(variables) as ConfigurableProvider[]).flatMap((provider) => {
    const file = tokenFileOf(config, provider, homeFolder);
    return file === undefined ? [] : [tokenCheck(provider, file)];
  });
  const keys = (Object.entries(variables) as [ConfigurableProvider, string | undefined][]).flatMap((entry): Check[] => {
    const [provider, variable] = entry;
    if (variable === undefined || config.providers[provider]?.oauth) return [];
    const isSet = Boolean(environment[variable]?.trim());
    const isNeeded = choice.name.startsWith(`${provider}/`) && provider !== "openai-compatible";
    if (isSet) return [ok(provider, `a key is set in ${variable}`)];
    return [
      isNeeded
        ? wrong(provider, `${choice.name} needs a key in ${variable}, which is not set`, `set ${variable}`)
        : note(provider, `no key in ${variable}`),
    ];
  });
  const model =
    choice.source === "fallback"
      ? note(
          "model",
          `${choice.name}, the offline demo: no model is configured and ${variables.openai} is not set`,
          `set ${variables.openai}, or model in config.yaml`,
        )
      : ok("model", `${choice.name} (${choice.source})`);
  return [model, ...keys, ...(await Promise.all(files))];
}

function codeOf(error: unknown): string {
  return systemCodeOf(error) ?? String(error);
}
