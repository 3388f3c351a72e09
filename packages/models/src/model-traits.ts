/** What is known of models and servers beyond their wire format: as data, the user's own words first. */
import { choiceError } from "./errors.ts";
import type { ModelName } from "./model-name.ts";
import type { ModelPrice } from "./model-price.ts";

/** What may be said of one model; every field that is absent keeps what the table knows. */
export interface ModelTraits {
  /** How many tokens one request and its answer may have together. */
  readonly contextWindowTokens?: number;
  /** How many tokens an answer may have, where the request does not say: sent with every request. */
  readonly outputTokensMax?: number;
  readonly price?: ModelPrice;
  /** False: it refuses tools. Requests carry none, and calls that others made stand in them as text. */
  readonly takesTools?: boolean;
  /** False: it refuses a system message. Its words stand at the beginning of the first message of the user. */
  readonly takesSystem?: boolean;
  /** False: it is asked for one call at a time. */
  readonly callsInParallel?: boolean;
  /** How the chat format names the bound of an answer. */
  readonly outputLimitField?: "max_tokens" | "max_completion_tokens";
  /**
   * How requests of one conversation find the same cache: `key`, a field of the request; `conversation-header`, one of
   * xAI's; `breakpoints`, Anthropic's marks at the end of what is the same; `none`.
   */
  readonly cache?: CacheMark;
}

export type CacheMark = "key" | "conversation-header" | "breakpoints" | "none";

interface Row {
  readonly provider?: string;
  /** The server's host; a row without one holds wherever the model is served. */
  readonly host?: RegExp;
  readonly model?: RegExp;
  readonly traits: ModelTraits;
}

const openAi = /(?:^|\.)api\.openai\.com$/;

/**
 * For each field the first row that matches counts. Windows are told for the makers' own servers alone: another server
 * with a model of that name serves what its memory allows. Where a maker gave one family several windows it is the
 * smallest, since a summary that comes early costs less than a request that is refused.
 */
const rows: readonly Row[] = [
  {
    provider: "openai",
    host: openAi,
    model: /^gpt-5.*-chat|^gpt-4o|^gpt-4-turbo|^o1-(?:mini|preview)/,
    traits: { contextWindowTokens: 128_000 },
  },
  { provider: "openai", host: openAi, model: /^gpt-5/, traits: { contextWindowTokens: 400_000 } },
  { provider: "openai", host: openAi, model: /^gpt-4\.1/, traits: { contextWindowTokens: 1_047_576 } },
  { provider: "openai", host: openAi, model: /^o[134](?:$|-)/, traits: { contextWindowTokens: 200_000 } },
  {
    provider: "anthropic",
    host: /(?:^|\.)api\.anthropic\.com$/,
    model: /^claude-/,
    traits: { contextWindowTokens: 200_000 },
  },
  // Reasoning models refuse the classic name of the bound, behind whatever gateway.
  { model: /(?:^|\/)(?:gpt-5|o[134](?:$|-))/, traits: { outputLimitField: "max_completion_tokens" } },
  { model: /(?:^|\/)o1-(?:mini|preview)/, traits: { takesSystem: false } },
  // Their chat templates know no system role, and servers that use those as they are refuse one.
  { provider: "openai-compatible", model: /(?:^|\/)gemma-?[12]?(?:$|[:-])/i, traits: { takesSystem: false } },
  { host: openAi, traits: { cache: "key" } },
  { host: /\.openai\.azure\.com$/, traits: { cache: "key" } },
  { host: /(?:^|\.)api\.x\.ai$/, traits: { cache: "conversation-header" } },
  { provider: "anthropic", traits: { cache: "breakpoints" } },
];

const traitKeys = [
  "contextWindowTokens",
  "outputTokensMax",
  "price",
  "takesTools",
  "takesSystem",
  "callsInParallel",
  "outputLimitField",
  "cache",
] as const satisfies readonly (keyof ModelTraits)[];

/** What is known of a model where it is called; `own` is what the user says of it and wins. */
export function traitsOf({ provider, modelId }: ModelName, baseUrl: string, own: ModelTraits = {}): ModelTraits {
  const { hostname } = new URL(baseUrl);
  const known = rows.filter(
    (row) =>
      (row.provider ?? provider) === provider &&
      (row.host?.test(hostname) ?? true) &&
      (row.model?.test(modelId) ?? true),
  );
  const traits: Record<string, unknown> = {};
  for (const one of [own, ...known.map((row) => row.traits)])
    for (const key of traitKeys) if (one[key] !== undefined) traits[key] ??= one[key];
  return traits;
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;
const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isPriceOfTokens = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value) && value >= 0;
const isPrice = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every(isPriceOfTokens);
const isOneOf =
  (...known: readonly string[]) =>
  (value: unknown): boolean =>
    typeof value === "string" && known.includes(value);

const checks: Readonly<Record<(typeof traitKeys)[number], readonly [(value: unknown) => boolean, string]>> = {
  contextWindowTokens: [isCount, "a whole number of tokens above 0"],
  outputTokensMax: [isCount, "a whole number of tokens above 0"],
  price: [isPrice, "prices of a million tokens, each a number of at least 0"],
  takesTools: [isFlag, "true or false"],
  takesSystem: [isFlag, "true or false"],
  callsInParallel: [isFlag, "true or false"],
  outputLimitField: [isOneOf("max_tokens", "max_completion_tokens"), "max_tokens or max_completion_tokens"],
  cache: [
    isOneOf("key", "conversation-header", "breakpoints", "none"),
    "key, conversation-header, breakpoints or none",
  ],
};

/** Throws `MODEL_OPTION_INVALID` naming the trait, what was expected and what was given. */
export function checkTraits(path: string, traits: ModelTraits): void {
  for (const [key, value] of Object.entries(traits) as [(typeof traitKeys)[number], unknown][]) {
    const [isRight, expected] = checks[key] ?? [() => false, `one of ${traitKeys.join(", ")}`];
    if (value === undefined || isRight(value)) continue;
    const got = JSON.stringify(value);
    throw choiceError("MODEL_OPTION_INVALID", `Option ${path}.${key}: expected ${expected}, got ${got}.`);
  }
}
