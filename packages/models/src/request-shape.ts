/** A request as one model takes it: a pure function of the request and of what is known of the model. */
import type {
  LanguageModelV3CallOptions,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import type { ModelTraits } from "./model-traits.ts";
import { withoutCalls, withoutSystem } from "./plain-prompt.ts";

type Options = LanguageModelV3CallOptions;

/** The name under which a caller's words to this package stand in `providerOptions`. */
const ownName = "turnkeeper";

function scopeIn({ providerOptions }: Options): string | undefined {
  const scope = providerOptions?.[ownName]?.["cacheScope"];
  return typeof scope === "string" && scope !== "" ? scope : undefined;
}

/** `name` is the one that the SDK's client looks under. */
function adding(options: Options, name: string, fields: SharedV3ProviderOptions[string]): Options {
  const { providerOptions = {} } = options;
  // What the caller says for itself counts.
  return { ...options, providerOptions: { ...providerOptions, [name]: { ...fields, ...providerOptions[name] } } };
}

const breakpoint: SharedV3ProviderOptions = { anthropic: { cacheControl: { type: "ephemeral" } } };

function marked<Marked extends LanguageModelV3Message | LanguageModelV3FunctionTool>(one: Marked): Marked {
  const { anthropic } = one.providerOptions ?? {};
  return anthropic?.["cacheControl"] === undefined
    ? { ...one, providerOptions: { ...one.providerOptions, anthropic: { ...breakpoint["anthropic"], ...anthropic } } }
    : one;
}

const markedLast = <One>(list: readonly One[], mark: (one: One) => One): One[] => {
  const last = list.at(-1);
  return last === undefined ? [] : [...list.slice(0, -1), mark(last)];
};

/**
 * Three marks of the four there may be: behind the tools, behind the system's words, and behind the last message, up to
 * which the next request will be the same.
 */
function withBreakpoints(options: Options): Options {
  const { prompt, tools } = options;
  const systemCount = prompt.findIndex(({ role }) => role !== "system");
  const head = prompt.slice(0, Math.max(0, systemCount));
  const rest = prompt.slice(head.length);
  return {
    ...options,
    prompt: [...markedLast<LanguageModelV3Message>(head, marked), ...markedLast<LanguageModelV3Message>(rest, marked)],
    ...(tools ? { tools: markedLast(tools, (tool) => (tool.type === "function" ? marked(tool) : tool)) } : {}),
  };
}

export interface ShapeOf {
  readonly traits: ModelTraits;
  /** The wire format, and the name under which its SDK client looks for options. */
  readonly format: "openai-responses" | "openai-chat" | "anthropic";
  readonly optionsName: string;
}

/** A request of no conversation (a summary, a name) is not repeated: to write it to a cache would only cost. */
function withCache(options: Options, { traits, format, optionsName }: ShapeOf, scope: string | undefined): Options {
  if (scope === undefined) return options;
  switch (traits.cache) {
    case "breakpoints":
      return format === "anthropic" ? withBreakpoints(options) : options;
    case "key":
      if (format === "anthropic") return options;
      return adding(options, optionsName, {
        [format === "openai-responses" ? "promptCacheKey" : "prompt_cache_key"]: scope,
      });
    case "conversation-header":
      return { ...options, headers: { "x-grok-conv-id": scope, ...options.headers } };
    default:
      return options;
  }
}

/** One call at a time, in the words of each format. */
function withSingleCalls(options: Options, { format, optionsName }: ShapeOf): Options {
  if (!options.tools?.length) return options;
  switch (format) {
    case "anthropic":
      return adding(options, optionsName, { disableParallelToolUse: true });
    case "openai-responses":
      return adding(options, optionsName, { parallelToolCalls: false });
    case "openai-chat":
      return adding(options, optionsName, { parallel_tool_calls: false });
  }
}

function withoutTools({ tools: _tools, toolChoice: _choice, ...options }: Options): Options {
  return { ...options, prompt: withoutCalls(options.prompt) };
}

/** The same request in the shape that the model takes; the caller's object is left as it is. */
export function shapedRequest(request: Options, shape: ShapeOf): Options {
  const { traits } = shape;
  const scope = scopeIn(request);
  let options: Options = request;
  if (request.providerOptions && ownName in request.providerOptions) {
    const { [ownName]: _own, ...providerOptions } = request.providerOptions;
    options = { ...options, providerOptions };
  }
  const { maxOutputTokens = traits.outputTokensMax } = options;
  if (maxOutputTokens !== undefined) options = { ...options, maxOutputTokens };
  if (traits.takesTools === false) options = withoutTools(options);
  if (traits.takesSystem === false) options = { ...options, prompt: withoutSystem(options.prompt) };
  if (traits.callsInParallel === false) options = withSingleCalls(options, shape);
  return withCache(options, shape, scope);
}

/** A chat request's body as the server names its fields. */
export function shapedBody(body: Record<string, unknown>, { outputLimitField }: ModelTraits): Record<string, unknown> {
  if (outputLimitField !== "max_completion_tokens" || body["max_tokens"] === undefined) return body;
  const { max_tokens, ...rest } = body;
  return { ...rest, max_completion_tokens: max_tokens };
}
