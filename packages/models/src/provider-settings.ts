import { isBlockedPort } from "./blocked-port.ts";
import type { Host } from "@turnkeeper/kernel";
import type { CallSubject } from "./call-subject.ts";
import type { CredentialSource } from "./credential.ts";
import { choiceError } from "./errors.ts";
import { providerNames } from "./model-name.ts";
import type { ModelName, ProviderName } from "./model-name.ts";
import { checkTraits, traitsOf } from "./model-traits.ts";
import type { ModelTraits } from "./model-traits.ts";
import { proxyFor } from "./proxy.ts";

/** What a user may set for one provider. */
export interface ProviderSettings {
  /** Where the API is, up to and without the path of a call: `http://127.0.0.1:11434/v1`. */
  readonly baseUrl?: string;
  /** Name of the environment variable that holds the key. */
  readonly apiKeyEnv?: string;
  /** Gives the bearer token of each request, in place of a key from the environment. */
  readonly credential?: CredentialSource;
  /** Longest silence of one model wait, in milliseconds. */
  readonly silenceMs?: number;
  /** How many tokens one request and its answer may have together. Default: unknown. */
  readonly contextWindowTokens?: number;
  /** Which of OpenAI's two APIs to speak; `openai` only. Default: `responses` at api.openai.com, `chat` anywhere else. */
  readonly api?: "chat" | "responses";
}

/** Environment variables by name, as the application read them: keys and locations. This package reads none itself. */
export type ModelEnvironment = Readonly<Record<string, string | undefined>>;

export interface ResolveModelOptions {
  readonly host: Host;
  readonly env?: ModelEnvironment;
  readonly providers?: Readonly<Partial<Record<Exclude<ProviderName, "demo">, ProviderSettings>>>;
  /** What is to be known of single models, by their whole name. It wins over the table of this package. */
  readonly models?: Readonly<Record<string, ModelTraits>>;
  /**
   * Longest silence of one model wait, in milliseconds, where the provider has no setting of its own. The transport
   * takes 600,000 when nobody sets one: what a large model on a slow machine may need to read a long prompt.
   */
  readonly silenceMs?: number;
  /**
   * How much longer than that the transport waits before it gives up by itself, in milliseconds. Default 60,000: a
   * turn's watchdog (two polls late at most) speaks first and names the stall; the transport is the net below it.
   */
  readonly graceMs?: number;
}

/** Everything that a network provider needs, checked. */
export interface ResolvedSettings {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly credential: CredentialSource | undefined;
  readonly proxy: URL | undefined;
  /** Undefined when nobody set one. */
  readonly silenceMs: number | undefined;
  readonly traits: ModelTraits;
  readonly idleTimeoutMs: number;
  readonly api: "chat" | "responses";
  readonly subject: CallSubject;
}

export const defaultSilenceMs = 600_000;
export const defaultGraceMs = 60_000;

interface ProviderFacts {
  readonly baseUrl?: string;
  readonly baseUrlEnv?: string;
  readonly keyEnv?: string;
}

const providerFacts: Readonly<Record<Exclude<ProviderName, "demo">, ProviderFacts>> = {
  openai: { baseUrl: "https://api.openai.com/v1", baseUrlEnv: "OPENAI_BASE_URL", keyEnv: "OPENAI_API_KEY" },
  anthropic: { baseUrl: "https://api.anthropic.com/v1", baseUrlEnv: "ANTHROPIC_BASE_URL", keyEnv: "ANTHROPIC_API_KEY" },
  "openai-compatible": {},
};

const optionKeys: readonly string[] = [
  "host",
  "env",
  "providers",
  "models",
  "silenceMs",
  "graceMs",
] satisfies (keyof ResolveModelOptions)[];
const settingKeys: readonly string[] = [
  "baseUrl",
  "apiKeyEnv",
  "credential",
  "silenceMs",
  "contextWindowTokens",
  "api",
] satisfies (keyof ProviderSettings)[];
const configurable: readonly string[] = providerNames.filter((name) => name !== "demo");

function refuseUnknown(path: string, value: object, known: readonly string[]): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw choiceError(
      "MODEL_OPTION_INVALID",
      `Option ${path}${unknown} is unknown; expected one of ${known.join(", ")}.`,
    );
}

function checkedMs(path: string, ms: number | undefined, leastMs: number): number | undefined {
  if (ms === undefined || (typeof ms === "number" && Number.isFinite(ms) && ms >= leastMs)) return ms;
  throw choiceError(
    "MODEL_OPTION_INVALID",
    `Option ${path} must be a finite number of milliseconds, at least ${leastMs}, got ${String(ms)}.`,
  );
}

function checkedTokens(path: string, tokens: number | undefined): number | undefined {
  if (tokens === undefined || (Number.isSafeInteger(tokens) && tokens > 0)) return tokens;
  throw choiceError(
    "MODEL_OPTION_INVALID",
    `Option ${path} must be a whole number of tokens above 0, got ${String(tokens)}.`,
  );
}

function checkApi(path: string, api: unknown): void {
  if (api === undefined || api === "chat" || api === "responses") return;
  throw choiceError(
    "MODEL_OPTION_INVALID",
    `Option ${path} must be "chat" or "responses", got ${JSON.stringify(api)}.`,
  );
}

/** Refuses unknown options, so that a misspelt one is not silently the default. Throws `MODEL_OPTION_INVALID`. */
export function checkOptions(options: ResolveModelOptions): void {
  refuseUnknown("", options, optionKeys);
  refuseUnknown("providers.", options.providers ?? {}, configurable);
  for (const [name, traits] of Object.entries(options.models ?? {})) checkTraits(`models.${name}`, traits);
  for (const [name, settings] of Object.entries(options.providers ?? {})) {
    refuseUnknown(`providers.${name}.`, settings, settingKeys);
    checkApi(`providers.${name}.api`, settings.api);
  }
}

// A value that is only white space is as good as none; a pasted key often ends with a line break.
const given = (value: string | undefined): string | undefined => {
  const trimmed = value?.trim();
  return trimmed === "" ? undefined : trimmed;
};

// The address as a person may see it: what stands before an @ can be a password.
const shownUrl = (url: string): string =>
  JSON.stringify(
    url
      .slice(0, 120)
      .replace(/\/\/[^/@]*@/, "//…@")
      .replace(/[?#].*$/, "?…"),
  );

function checkedBaseUrl(text: string, source: string): URL {
  const expected = "expected http:// or https:// with a host and without user name, query or fragment";
  const invalid = (): Error =>
    choiceError("MODEL_BASE_URL_INVALID", `${source} is no usable base URL: ${expected}, got ${shownUrl(text)}.`);
  if (!URL.canParse(text)) throw invalid();
  const url = new URL(text);
  const isWeb = url.protocol === "http:" || url.protocol === "https:";
  if (!isWeb || url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") throw invalid();
  if (isBlockedPort(url)) {
    const message = `${source} names port ${url.port}, which fetch refuses to speak to (the Fetch standard blocks it). Serve the model on another port.`;
    throw choiceError("MODEL_BASE_URL_INVALID", message);
  }
  return url;
}

const withoutTrailingSlash = (url: URL): string => url.href.replace(/\/+$/, "");

/** Anthropic's own clients take the address without its version; both ways of writing it work here. */
const withVersion = (url: string): string => (/\/v\d+$/.test(url) ? url : `${url}/v1`);

const isOfficialOpenAi = (url: URL): boolean =>
  url.hostname === "api.openai.com" || url.hostname.endsWith(".api.openai.com");

function keyOf(
  { provider }: ModelName,
  keyName: string | undefined,
  env: ModelEnvironment,
  id: string,
): string | undefined {
  const key = keyName === undefined ? undefined : given(env[keyName]);
  if (key === undefined) {
    // A compatible server often wants no key (Ollama, llama.cpp), also where the settings name a variable for one.
    if (provider === "openai-compatible") return undefined;
    throw choiceError(
      "MODEL_KEY_MISSING",
      `Cannot use ${id}: it needs a key in the environment variable ${keyName}, which is not set. Set it, or try demo/tools, which needs none.`,
    );
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw choiceError(
      "MODEL_KEY_INVALID",
      `Cannot use ${id}: the value of ${keyName} cannot be a key, since it holds white space or a letter outside ASCII. Set it again.`,
    );
  }
  return key;
}

/** Decides where a model is called and with what. The environment wins over settings, settings over the default. */
export function resolveSettings(
  name: ModelName & { readonly provider: Exclude<ProviderName, "demo"> },
  options: ResolveModelOptions,
): ResolvedSettings {
  const { provider, modelId } = name;
  const { env = {} } = options;
  const settings = options.providers?.[provider] ?? {};
  const facts = providerFacts[provider];
  const id = `${provider}/${modelId}`;

  const fromEnv = facts.baseUrlEnv === undefined ? undefined : given(env[facts.baseUrlEnv]);
  const text = fromEnv ?? given(settings.baseUrl) ?? facts.baseUrl;
  if (text === undefined) {
    throw choiceError(
      "MODEL_BASE_URL_MISSING",
      `Cannot use ${id}: it needs providers.${provider}.base_url, the address of the server, for example http://127.0.0.1:11434/v1.`,
    );
  }
  const url = checkedBaseUrl(text, fromEnv === undefined ? `providers.${provider}.base_url` : String(facts.baseUrlEnv));
  const baseUrl = withoutTrailingSlash(url);

  const keyName = settings.apiKeyEnv ?? facts.keyEnv;
  const { credential } = settings;
  const contextWindowTokens = checkedTokens(`providers.${provider}.contextWindowTokens`, settings.contextWindowTokens);
  const apiKey = credential ? undefined : keyOf(name, keyName, env, id);
  const proxy = proxyFor(url, env);
  const silenceMs =
    checkedMs(`providers.${provider}.silenceMs`, settings.silenceMs, 1) ?? checkedMs("silenceMs", options.silenceMs, 1);
  const idleTimeoutMs = (silenceMs ?? defaultSilenceMs) + (checkedMs("graceMs", options.graceMs, 0) ?? defaultGraceMs);
  const subject: CallSubject = {
    id,
    // Tokens come and go: what is secret is asked for when a message is written.
    get secrets() {
      return credential?.secrets ?? (apiKey === undefined ? [] : [apiKey]);
    },
    idleTimeoutMs,
    hasCredential: credential !== undefined,
    ...(proxy ? { proxyHost: proxy.host } : {}),
    ...(keyName === undefined ? {} : { key: { name: keyName, isSet: apiKey !== undefined } }),
  };
  return {
    baseUrl: provider === "anthropic" ? withVersion(baseUrl) : baseUrl,
    apiKey,
    credential,
    proxy,
    silenceMs,
    traits: traitsOf(name, baseUrl, {
      ...(contextWindowTokens ? { contextWindowTokens } : {}),
      ...options.models?.[id],
    }),
    idleTimeoutMs,
    api: settings.api ?? (isOfficialOpenAi(url) ? "responses" : "chat"),
    subject,
  };
}
